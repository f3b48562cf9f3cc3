"""Moves of versions: copy each blob, then switch the version in one transaction.

The switch requires an unchanged version: a concurrent overwrite wins. The old blob goes to the discard queue, or stays
for other references.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import EventBuilder, emit_events
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.index.relocation.rows import Archive, MetaUpdate, TransitionEntry
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.index.restore.state import ARCHIVE_OFFSET
from sluice_s3.app.jobs.pacing import Pacer
from sluice_s3.app.jobs.relocation.blob_copier import RECORDS_PER_BATCH, BlobCopier, CopyRequest
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store, StoredBlob

MAX_ATTEMPTS = 3
"""Compaction may move a record during an attempt."""


STEP_BYTES = 64 << 20
"""Bytes after which a step ends: if the process dies, only the current step is lost."""


class SettingsChanged(Exception):
    """The bucket's settings changed, or a move of the bucket began or ended."""


class Relocation(NamedTuple):
    """A version that must move to another store."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]
    storage_class: str
    headers: str | None = None
    """The new headers; None leaves them."""
    note: MetaUpdate | None = None
    keeps_archive: bool = False
    """Whether its old blobs stay referenced, until another relocation of the version uses them again."""


class _LocatedVersion(NamedTuple):
    """The version, and its blobs on other stores, each with its part number."""

    relocation: Relocation
    version: Version
    blobs: tuple[tuple[str, int], ...]
    archive: Archive = Archive.NONE


class VersionRelocator:
    """Mover of one bucket's versions to the store `target`.

    `settings` are those that the bucket must have, if any; `event_builder` builds event messages.
    """

    def __init__(
        self,
        store: Store,
        bucket: Bucket,
        target: Store,
        pacer: Pacer,
        *,
        settings: str | None = None,
        event_builder: EventBuilder | None = None,
    ) -> None:
        self._index = store.index
        self._bucket = bucket
        self._target = target
        self._settings = settings
        self._event_builder = event_builder
        self._copier = BlobCopier(store, bucket, target, pacer)

    async def relocate(self, relocations: Sequence[Relocation]) -> dict[int, int]:
        """Move versions; return their new numbers by the old ones.

        Versions that changed or cannot be read are left out. Raises SettingsChanged, DomainError.
        """
        new_seqs: dict[int, int] = {}
        for first in range(0, len(relocations), RECORDS_PER_BATCH):
            batch = relocations[first : first + RECORDS_PER_BATCH]
            for _ in range(MAX_ATTEMPTS):
                remaining = deque(relocation for relocation in batch if relocation.seq not in new_seqs)
                any_found = False
                while remaining:
                    if group := await self._take_group(remaining):
                        new_seqs |= await self._move(group)
                        any_found = True
                if not any_found:
                    break
        return new_seqs

    async def _take_group(self, remaining: deque[Relocation]) -> list[_LocatedVersion]:
        """Remove from `remaining` the next versions of one step, and return them.

        A version of many blobs is a step of its own: its rows, at most 10,000, change in one transaction as at its
        completion, because readers must find all its blobs.
        """
        group: list[_LocatedVersion] = []
        size = blobs = 0
        while remaining and size < STEP_BYTES:
            located = await self._find(remaining[0])
            if located is not None and group and blobs + len(located.blobs) > RECORDS_PER_BATCH:
                break
            remaining.popleft()
            if located is not None:
                group.append(located)
                size += located.version.size
                blobs += len(located.blobs)
        return group

    async def _find(self, relocation: Relocation) -> _LocatedVersion | None:
        """Return the version if it is unchanged since the request."""
        version = await self._index.version(self._bucket.id, relocation.key, relocation.version_id)
        if version is None or version.seq != relocation.seq or is_plain_file(version.body):
            return None
        if relocation.headers is None and restore_state.restore_state(version.headers) is not None:
            return None  # it is read from the archive again
        archived: dict[int, str] = {}
        if not version.body.startswith(PIECES):
            blobs: Iterable[tuple[str, int]] = [(version.body, 0)] if version.body else []
        else:
            references = await self._index.find_piece_blobs(int(version.body.removeprefix(PIECES)))
            archived = {
                reference.first - ARCHIVE_OFFSET: reference.locator
                for reference in references
                if reference.first >= ARCHIVE_OFFSET
            }
            references = [reference for reference in references if reference.first < ARCHIVE_OFFSET]
            is_complete = archived.keys() == {reference.first for reference in references}
            if (
                archived
                and is_complete
                and all(store_of_locator(blob) == self._target.name for blob in archived.values())
            ):
                return _LocatedVersion(relocation, version, (), Archive.LEFT)
            blobs = {reference.locator: reference.second for reference in references}.items()
        if self._copier.stuck.intersection(blob for blob, _ in blobs):
            return None
        if not archived and all(store_of_locator(blob) == self._target.name for blob, _ in blobs):
            blobs = ()
        return _LocatedVersion(
            relocation, version, tuple(blobs), Archive.KEPT if relocation.keeps_archive else Archive.NONE
        )

    async def _move(self, found: Sequence[_LocatedVersion]) -> dict[int, int]:
        """Copy the blobs and switch the references to the copies."""
        requests = {request.body: request for version in found for request in _make_requests(version)}
        copies = await self._copier.copy(list(requests.values()))
        crash_point("transition.copied")
        copied = [version for version in found if all(blob in copies for blob, _ in version.blobs)]
        seqs = await self._commit([_make_entry(version, copies) for version in copied], copies)
        crash_point("transition.moved")
        referenced = {blob for version, seq in zip(copied, seqs, strict=True) if seq for blob, _ in version.blobs}
        await self._copier.discard_unused(copies, referenced)
        return {version.relocation.seq: seq for version, seq in zip(copied, seqs, strict=True) if seq}

    async def _commit(self, entries: Sequence[TransitionEntry], copies: dict[str, StoredBlob]) -> list[int]:
        if not entries:
            return []
        try:
            async with emit_events(self._event_builder):
                seqs = await self._index.reclass(self._bucket, self._settings, entries)
        except CommitUnknown:
            raise  # the orphan sweeper asks the index for the outcome
        except DomainError:
            await self._copier.discard_unused(copies, set())
            raise
        if seqs is None:
            await self._copier.discard_unused(copies, set())
            raise SettingsChanged
        return seqs


def _make_requests(found: _LocatedVersion) -> Iterator[CopyRequest]:
    version = found.version
    upload = int(version.body.removeprefix(PIECES)) if version.body.startswith(PIECES) else 0
    for blob, part in found.blobs:
        yield CopyRequest(BlobReference("version", version.seq), blob, version.key, upload, part, shared=False)


def _make_entry(found: _LocatedVersion, copies: dict[str, StoredBlob]) -> TransitionEntry:
    relocation, version = found.relocation, found.version
    locators = {blob: copies[blob].locator for blob, _ in found.blobs}
    current = (version.body, relocation.storage_class, locators, version.size, version.etag)
    return TransitionEntry(
        relocation.key,
        relocation.version_id,
        relocation.seq,
        relocation.states,
        *current,
        relocation.headers,
        relocation.note,
        found.archive,
    )
