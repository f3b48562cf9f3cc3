"""Journals of batches, and what `sluice rebuild` reads of a store over fsspec."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import BlobMissing, StoreFailed
from sluice_s3.storage_drivers.fsspec.contents import raise_generation
from sluice_s3.storage_drivers.fsspec.store import FsspecDriver
from sluice_s3.storage_drivers.objects.offline_reader import Damaged
from tests.unit.storage_drivers.conftest import MakeStore
from tests.unit.storage_drivers.places import Place, file_place, memory_place
from tests.unit.storage_drivers.tools import Pieces, blobs

FIRST = [JournalRecord(7, b"claim", b"body"), JournalRecord(9, b"", b"x" * 1_500_000)]
SECOND = [JournalRecord(11, b"c", b"")]
THIRD = [JournalRecord(12, b"d", b"third"), JournalRecord(13, b"e", b"last")]
JOURNAL = "journals/0000000000000005.journal"


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return memory_place() if request.param == "memory" else file_place(tmp_path / "store")


async def test_what_is_written_is_read(store: FsspecDriver, place: Place) -> None:
    length = await store.write_journal(5, FIRST)
    assert length < await store.write_journal(5, SECOND)
    assert place.stored("journals") == [f"0000000000000005.journal.{number}" for number in (0, 1)]
    for number in range(2, 12):
        length = await store.write_journal(5, [JournalRecord(number + 100, b"", b"")])
    assert store.contents().journal_size(5) == length
    await store.write_journal(6, SECOND)
    await store.end_journal(5)
    await store.end_journal(5)
    contents = store.contents()
    assert contents.journals() == [5, 6]
    numbers = [record.number for record in contents.journal(5) if record is not None]
    assert numbers == [7, 9, 11, *range(102, 112)], "in the order of numbers, not of names"
    assert list(contents.journal(6)) == SECOND
    assert await store.check_journal(5)
    assert await blobs(store) == {}, "a journal is no blob"
    await store.discard_journals([5, 7])
    assert place.stored("journals") == ["0000000000000006.journal.0"]
    assert await store.check_journal(5)
    with pytest.raises(BlobMissing):
        list(contents.journal(5))


async def test_a_journal_that_was_ended_is_not_gone_on_with(make_store: MakeStore) -> None:
    store = await make_store()
    await store.write_journal(5, FIRST)
    await store.end_journal(5)
    for driver in (store, await make_store()):
        with pytest.raises(StoreFailed):
            await driver.write_journal(5, SECOND)


async def test_torn_missing_and_damaged_batches(store: FsspecDriver, place: Place) -> None:
    for batch in (FIRST, SECOND, THIRD):
        await store.write_journal(5, batch)
    journal = lambda: list(store.contents().journal(5))  # noqa: E731
    last, middle = place.read(f"{JOURNAL}.2"), place.read(f"{JOURNAL}.1")
    for cut, left in ((last[:-2], THIRD[:1]), (last[:30], []), (b"", [])):
        place.write(f"{JOURNAL}.2", cut)
        assert journal() == [*FIRST, *SECOND, *left], "its writer died in the last batch"
        assert await store.check_journal(5)
    place.write(f"{JOURNAL}.2", last)
    for cut in (middle[:-1], middle[:30], b""):
        place.write(f"{JOURNAL}.1", cut)
        assert journal() == [*FIRST, None, *THIRD]
        assert not await store.check_journal(5)
    place.remove(f"{JOURNAL}.1")
    assert journal() == [*FIRST, None, *THIRD]
    place.write(f"{JOURNAL}.1", middle)
    first = bytearray(place.read(f"{JOURNAL}.0"))
    first[first.index(b"xxxx") + 5] ^= 1
    place.write(f"{JOURNAL}.0", bytes(first))
    assert journal() == [FIRST[0], None, *SECOND, *THIRD]
    place.write(f"{JOURNAL}.0", place.read(f"{JOURNAL}.2"))
    assert journal()[0] == THIRD[0], "a batch in another's place is seen by its numbers only"


async def test_a_batch_of_another_journal_is_none(store: FsspecDriver, place: Place) -> None:
    await store.write_journal(5, FIRST)
    await store.write_journal(5, SECOND)
    await store.write_journal(6, THIRD)
    place.write(f"{JOURNAL}.0", place.read("journals/0000000000000006.journal.0"))
    assert list(store.contents().journal(5)) == [None, *SECOND]


async def test_contents_of_a_store(store: FsspecDriver, place: Place) -> None:
    assert store.contents().empty
    assert await store.empty()
    locator = await store.put(9, Pieces(b"body"), make_header=lambda: b"claim")
    other = await store.put(10, Pieces(b"other"))
    place.write("data/00/notes.txt", b"not ours")
    contents = store.contents()
    assert not contents.empty
    assert not await store.empty()
    found = list(contents.files())
    assert [(blob.locator, blob.size, blob.recovery_header) for blob in found if not isinstance(blob, Damaged)] == [
        (locator, 4, b"claim"),
        (other, 5, b""),
    ]
    assert contents.intact(locator)
    name = "data/09/0000000000000009"
    whole = place.read(name)
    place.write(name, b"b0dy" + whole[4:])
    assert not contents.intact(locator)
    place.write(name, whole[:20])
    assert isinstance(next(contents.files()), Damaged)
    assert not contents.intact("f:00000000000000ff")
    assert not contents.intact("nothing")
    assert contents.packs() == []
    for call in (contents.pack_size, contents.records):
        with pytest.raises(BlobMissing):
            call(1)


async def test_a_journal_alone_is_contents(store: FsspecDriver) -> None:
    await store.write_journal(5, SECOND)
    assert not await store.empty()


async def test_the_next_generation(make_store: MakeStore, place: Place) -> None:
    store = await make_store()
    assert store.identity is not None
    raised = raise_generation(store._remote)
    assert raised == (store.identity.store, store.identity.generation + 1)
    assert (await make_store(create=False)).identity == raised
    assert place.stored("") == ["store.json"]
    place.remove("store.json")
    with pytest.raises(StoreFailed):
        raise_generation(store._remote)
