"""Blobs that journals name as the body of a version, whatever the index has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Set
from typing import Any

from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.journals import encoding
from sluice_s3.app.store.offline import locate
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import BlobMissing

BODY_COLUMN, LOCATOR_COLUMN = 13, 4
"""Columns of the rows of versions and of pieces in journals."""
NamedVersion = tuple[int, str, str]
"""Bucket, key and version id."""


async def find_journaled(store: Store, locators: Collection[str]) -> set[str]:
    """Return those locators, of blobs or whole packs, that some version's last record names.

    It reads all journals, and reads them again when the locators include pieces of an upload: the record of its version
    may come earlier. Damaged records name nothing. Raises DomainError.
    """
    ids = {find_id(store, locator): locator for locator in locators}
    uploads: dict[int, set[int]] = {}
    live = await _find_live(store, ids.keys(), uploads)
    if uploads:
        live = await _find_live(store, ids.keys(), uploads)
    return {ids[number] for numbers in live for number in numbers}


def find_id(store: Store, locator: str) -> int:
    """Return the number that was drawn for a blob, or for a whole pack."""
    return store.driver.whole_pack(locator) or store.driver.blob_id(locator)


async def _find_live(store: Store, ids: Set[int], uploads: dict[int, set[int]]) -> list[set[int]]:
    """Return the wanted ids that each version's last record names.

    Adds to `uploads` the uploads of those that are pieces.
    """
    live: dict[NamedVersion, tuple[int, set[int]]] = {}
    async for fields in _records(store):
        for row in fields.get("pieces", ()):
            for number in _numbers(row[LOCATOR_COLUMN]) & ids:
                uploads.setdefault(row[0], set()).add(number)
        for row in fields.get("versions", ()):
            version = (row[1], row[2], row[3])
            numbers = _numbers(row[BODY_COLUMN]) & ids
            if row[BODY_COLUMN].startswith(PIECES):
                numbers = uploads.get(int(row[BODY_COLUMN].removeprefix(PIECES)), set())
            if (numbers or version in live) and row[0] >= live.get(version, (0, numbers))[0]:
                live[version] = row[0], numbers
        for seq, kind, bucket_id, key, _, *more in fields.get("removals", ()):
            version = (bucket_id, key, more[1] if len(more) > 1 else "null")
            if kind == "object" and version in live and seq >= live[version][0]:
                live[version] = seq, set()
    return [numbers for _, numbers in live.values()]


def _numbers(locator: str) -> set[int]:
    """Return the ids of a blob and of its pack. One sequence numbers both."""
    location = locate(locator)
    return set() if location is None else {location[0], location[1]}


async def _records(store: Store) -> AsyncIterator[dict[str, Any]]:
    """Yield the bodies of all records of all journals, in order."""
    found: list[tuple[int, Store]] = []
    for backing_store in store.all.values():
        with translate_driver_errors():
            listed = await backing_store.driver.journal_sizes()
        entered = [journal.id for journal in await store.index.journals(backing_store.name)]
        found += [(number, backing_store) for number in {*listed, *entered}]
    for number, backing_store in sorted(found, key=lambda pair: pair[0]):
        with translate_driver_errors():
            try:
                async for record in backing_store.driver.read_journal(number):
                    if record is not None:
                        yield _fields(record)
            except BlobMissing:
                continue


def _fields(record: Any) -> dict[str, Any]:
    try:
        return encoding.decode(record)
    except ValueError:
        return {}
