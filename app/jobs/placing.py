"""Puts versions on other stores: each blob is copied, and then one transaction gives the version its new place.

It does so if the version is still as it was found: whoever overwrote it meanwhile wins. The old blob goes to the
discard queue, or stays for those who share it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from app.crash import crash_point
from app.errors import CommitUnknown, DomainError
from app.index import restores
from app.index.restores import KEPT
from app.index.rows import PIECES, Bucket, Holder, Version, is_tree
from app.index.telling import Teller, telling
from app.index.transitions import Archive, Note, Reclassed
from app.jobs.copying import RECORDS, Copier, Want
from app.store.place import owner
from app.store.store import Kept, Store

ATTEMPTS = 3
"""Compaction may move a record just then."""


BYTES = 64 << 20
"""Bytes after which a step ends: what was copied is lost with the process until then."""


class Settled(Exception):
    """The bucket's settings are others by now, or it began or ended to be moved to another store."""


class Pacer:
    """Lets so many bytes a second pass."""

    def __init__(self, rate: int) -> None:
        self._rate = rate
        self._free = 0.0

    async def __call__(self, count: int) -> None:
        """Count bytes, and wait until more may pass."""
        now = time.monotonic()
        self._free = max(self._free, now) + count / self._rate
        if self._free > now:
            await asyncio.sleep(self._free - now)


class Wish(NamedTuple):
    """A version that is to be on another store."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]
    storage_class: str
    headers: str | None = None
    """The new ones; None: they stay."""
    note: Note | None = None
    keeps: bool = False
    """What it is made of stays held where it is, until another wish for the version has it there again."""


class _Found(NamedTuple):
    """The version, and what of it lies elsewhere: blobs, each with the number of its part."""

    wish: Wish
    version: Version
    blobs: tuple[tuple[str, int], ...]
    archive: Archive = Archive.NONE


class Placer:
    """Puts versions of one bucket on the store `target`.

    `settings` are those that the bucket must have, if any; `teller` makes messages of it.
    """

    def __init__(
        self,
        store: Store,
        bucket: Bucket,
        target: Store,
        pace: Pacer,
        *,
        settings: str | None = None,
        teller: Teller | None = None,
    ) -> None:
        self._index = store.index
        self._bucket = bucket
        self._target = target
        self._settings = settings
        self._teller = teller
        self._copier = Copier(store, bucket, target, pace)

    async def place(self, wishes: Sequence[Wish]) -> dict[int, int]:
        """Place them; their new numbers by the old ones, of those that were as they should be and could be read.

        Raises Settled, DomainError.
        """
        done: dict[int, int] = {}
        for first in range(0, len(wishes), RECORDS):
            some = wishes[first : first + RECORDS]
            for _ in range(ATTEMPTS):
                left = deque(one for one in some if one.seq not in done)
                any_found = False
                while left:
                    if group := await self._take(left):
                        done |= await self._move(group)
                        any_found = True
                if not any_found:
                    break
        return done

    async def _take(self, left: deque[Wish]) -> list[_Found]:
        """The next ones that are placed in one step, taken off those that are left.

        One of many blobs goes alone: its rows, at most 10,000, change in one transaction as when it was completed,
        because readers must find all its blobs.
        """
        group: list[_Found] = []
        size = blobs = 0
        while left and size < BYTES:
            one = await self._find(left[0])
            if one is not None and group and blobs + len(one.blobs) > RECORDS:
                break
            left.popleft()
            if one is not None:
                group.append(one)
                size += one.version.size
                blobs += len(one.blobs)
        return group

    async def _find(self, wish: Wish) -> _Found | None:
        """The version, if it is as it was when it was wished for."""
        version = await self._index.version(self._bucket.id, wish.key, wish.version_id)
        if version is None or version.seq != wish.seq or is_tree(version.body):
            return None
        if wish.headers is None and restores.of(version.headers) is not None:
            return None  # it goes on from where it is archived
        kept: dict[int, str] = {}
        if not version.body.startswith(PIECES):
            blobs: Iterable[tuple[str, int]] = [(version.body, 0)] if version.body else []
        else:
            held = await self._index.held_by_pieces(int(version.body.removeprefix(PIECES)))
            kept = {one.first - KEPT: one.locator for one in held if one.first >= KEPT}
            held = [one for one in held if one.first < KEPT]
            whole = kept.keys() == {one.first for one in held}
            if kept and whole and all(owner(blob) == self._target.name for blob in kept.values()):
                return _Found(wish, version, (), Archive.LEFT)
            blobs = {one.locator: one.second for one in held}.items()
        if self._copier.stuck.intersection(blob for blob, _ in blobs):
            return None
        if not kept and all(owner(blob) == self._target.name for blob, _ in blobs):
            blobs = ()
        return _Found(wish, version, tuple(blobs), Archive.KEPT if wish.keeps else Archive.NONE)

    async def _move(self, found: Sequence[_Found]) -> dict[int, int]:
        """Copy what they hold and let them hold the copies."""
        wants = {want.body: want for one in found for want in _wants(one)}
        kept = await self._copier.copy(list(wants.values()))
        crash_point("transition.copied")
        whole = [one for one in found if all(blob in kept for blob, _ in one.blobs)]
        done = await self._commit([_entry(one, kept) for one in whole], kept)
        crash_point("transition.moved")
        held = {blob for one, seq in zip(whole, done, strict=True) if seq for blob, _ in one.blobs}
        await self._copier.settle(kept, held)
        return {one.wish.seq: seq for one, seq in zip(whole, done, strict=True) if seq}

    async def _commit(self, entries: Sequence[Reclassed], kept: dict[str, Kept]) -> list[int]:
        if not entries:
            return []
        try:
            with telling(self._teller):
                done = await self._index.reclass(self._bucket, self._settings, entries)
        except CommitUnknown:
            raise  # the sweep asks the index what became of them
        except DomainError:
            await self._copier.settle(kept, set())
            raise
        if done is None:
            await self._copier.settle(kept, set())
            raise Settled
        return done


def _wants(found: _Found) -> Iterator[Want]:
    version = found.version
    upload = int(version.body.removeprefix(PIECES)) if version.body.startswith(PIECES) else 0
    for blob, part in found.blobs:
        yield Want(Holder("version", version.seq), blob, version.key, upload, part, shared=False)


def _entry(found: _Found, kept: dict[str, Kept]) -> Reclassed:
    wish, version = found.wish, found.version
    places = {blob: kept[blob].locator for blob, _ in found.blobs}
    now = (version.body, wish.storage_class, places, version.size, version.etag)
    return Reclassed(wish.key, wish.version_id, wish.seq, wish.states, *now, wish.headers, wish.note, found.archive)
