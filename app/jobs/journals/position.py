"""The position of the index against a store's journals: current, behind or foreign.

The index announces each batch before it is written into a journal, and lists each journal before its file is created.
So a journal with a record beyond the last announced number shows that the index is an older state of itself. An unknown
journal shows that it is an older state, or another index.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from sluice_s3.app.errors import IndexBehind, IndexForeign
from sluice_s3.app.index.journals.rows import WHOLE
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.journals.encoding import RecordHeader, parse_header
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobMissing

logger = logging.getLogger("sluice.jobs")

Relation = Literal["current", "behind", "foreign"]


class Position(NamedTuple):
    """The position of the index against the journals of a store."""

    relation: Relation
    records: int = 0
    """Journal records that the index lacks."""
    since_ms: int = 0
    until_ms: int = 0
    """When the first and the last of these were written, in milliseconds since the epoch."""
    cut: tuple[int, ...] = ()
    """Journals that are shorter than the index has recorded, or missing."""

    @property
    def span_ms(self) -> int:
        """Milliseconds between the first and the last record that the index lacks."""
        return self.until_ms - self.since_ms


async def compare(store: Store) -> Position:
    """Compare the index with the journals of a store. Raises DomainError; writes nothing."""
    index, driver = store.index, store.driver
    with translate_driver_errors():
        sizes = await driver.journal_sizes()
    listed = await index.journals(store.name)
    recorded = {journal.id: journal.bytes for journal in listed}
    replaced = max((journal.id for journal in listed if journal.snapshot == WHOLE), default=0)
    cut = [number for number, size in sizes.items() if size < recorded.get(number, 0)]
    longer = [number for number, size in sorted(sizes.items()) if size > recorded.get(number, 0)]
    tails = {number: await _read_tail(store, number, recorded.get(number, 0)) for number in longer}
    # Read the index last: each batch in a journal was announced before it was written.
    announced = await index.announced(store.name)
    unknown_records = [heading for headings in tails.values() for heading in headings if heading.until > announced]
    foreign = any(heading.until < announced for number in tails.keys() - recorded.keys() for heading in tails[number])
    without_file = [number for number in recorded.keys() - sizes.keys() if recorded[number] and number >= replaced]
    cut += [number for number in without_file if await _is_missing(store, number)]
    if foreign:
        return Position("foreign", cut=tuple(cut))
    if not unknown_records:
        return Position("current", cut=tuple(cut))
    times = [heading.at for heading in unknown_records]
    return Position("behind", len(unknown_records), min(times), max(times), tuple(cut))


async def require_current(store: Store) -> Position:
    """Compare, and raise IndexBehind or IndexForeign unless the index is current."""
    position = await compare(store)
    if position.relation == "current":
        return position
    # a journal may be discarded, or created, between the list of the files and that of the index
    position = await compare(store)
    if position.relation == "behind":
        raise IndexBehind(reason=behind_message(store.name, position), span_ms=position.span_ms)
    if position.relation == "foreign":
        raise IndexForeign(
            reason=f"{_label(store.name)}the journals beside the data are not those of this index: "
            "use the index that belongs to this data, or `sluice rebuild --replace`"
        )
    return position


def behind_message(name: str, position: Position) -> str:
    """Return how far an index is behind a store's journals, and what to do.

    The message is one line.
    """
    until = datetime.fromtimestamp(position.until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (
        f"{_label(name)}the index is older than its data: the journals go on for {position.records} records, "
        f"{position.span_ms / 1000:.0f} seconds, up to {until}. `sluice recover` brings it up to date"
    )


async def _read_tail(store: Store, number: int, length: int) -> list[RecordHeader]:
    try:
        with translate_driver_errors():
            return list(_parse_headers(await store.driver.journal_tail(number, length)))
    except Exception as error:
        if isinstance(error.__cause__, BlobMissing):  # discarded since it was listed
            return []
        raise


def _parse_headers(records: Iterable[JournalRecord | None]) -> Iterable[RecordHeader]:
    for record in records:
        if record is None:
            continue  # damaged, which the scrubber reports
        try:
            yield parse_header(record)
        except ValueError:
            continue


async def _is_missing(store: Store, number: int) -> bool:
    """Return whether a journal is in neither of its two possible directories."""
    try:
        await store.driver.journal_tail(number, 1 << 62)
    except BlobMissing:
        return True
    return False


def _label(name: str) -> str:
    return "" if name == DEFAULT else f"store {name}: "
