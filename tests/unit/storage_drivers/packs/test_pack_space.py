"""Space of packs: holes in dead records, records that move, whole packs that go."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.packs import format, holes
from sluice_s3.storage_drivers.packs.reader import RecordLocation, parse_locator
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.packs.test_packs import Appends, Book, packs
from tests.unit.storage_drivers.tools import blobs

SIZE = 40_000


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def driver(make_driver: MakeDriver, book: Book) -> ObjectsDriver:
    driver = await make_driver(pack_threshold=SIZE, pack_size=1 << 20)
    driver.open_packs(book)
    return driver


@given(
    st.lists(st.tuples(st.integers(40, 200_000), st.booleans()), min_size=1, max_size=30),
    st.sampled_from([4096, 65536]),
)
def test_holes_touch_no_page_of_anything_else(records: list[tuple[int, bool]], page: int) -> None:
    at = format.PACK_HEADER
    live = [(0, at)]
    dead: list[RecordLocation] = []
    for number, (size, is_dead) in enumerate(records):
        if is_dead:
            dead.append(RecordLocation(7, at, size, number))
        else:
            live.append((at, at + size))
        at += size
    runs = holes.dead_runs(reversed(dead), page).get(7, [])
    assert runs == sorted(runs)
    for offset, length in runs:
        assert offset % page == length % page == 0
        assert length >= holes.MIN_HOLE_BYTES
        assert all(end <= offset or start >= offset + length for start, end in live)
        assert offset + length <= at
    # and every run of dead bytes that holds pages enough is among them
    spans: list[list[int]] = []
    for place in dead:
        if spans and spans[-1][1] == place.offset:
            spans[-1][1] += place.total
        else:
            spans.append([place.offset, place.offset + place.total])
    pages = [end // page * page - -(-start // page) * page for start, end in spans]
    assert sum(length for _, length in runs) == sum(size for size in pages if size >= holes.MIN_HOLE_BYTES)


async def test_a_punched_record_is_damaged_and_its_neighbours_are_whole(driver: ObjectsDriver, root: Path) -> None:
    if not holes.probe(str(root)):
        pytest.skip("no holes on this file system")
    bodies = [os.urandom(SIZE) for _ in range(20)]
    entries = await Appends(driver).put(*bodies)
    (pack,) = packs(root)
    before = pack.stat()
    dead = [entry.locator for entry in entries[3:13]]
    assert await driver.read(dead[0], 0, SIZE) == bodies[3]  # opens the pack
    assert driver.try_read(dead[0], 0, SIZE) == (bodies[3] if driver.capabilities.nowait else None)
    await driver.discard_many(dead)
    after = pack.stat()
    assert after.st_size == before.st_size
    assert 9 * SIZE < (before.st_blocks - after.st_blocks) * 512 <= 10 * (SIZE + 200)
    for locator in dead:
        with pytest.raises(BlobDamaged):
            await driver.read(locator, 0, SIZE)
        assert driver.try_read(locator, 0, SIZE) is None
    for entry, body in list(zip(entries, bodies, strict=True))[:3] + list(zip(entries, bodies, strict=True))[13:]:
        assert await driver.read(entry.locator, 0, SIZE) == body
    found = await blobs(driver)
    assert {entry.locator for entry in entries} - set(dead) <= set(found)
    await driver.discard_many(dead)  # again is no error


async def test_small_runs_stay(driver: ObjectsDriver, root: Path) -> None:
    entries = await Appends(driver).put(*(os.urandom(SIZE) for _ in range(6)))
    await driver.discard_many([entry.locator for entry in entries[::2]])
    for entry in entries:
        assert len(await driver.read(entry.locator, 0, SIZE)) == SIZE


@pytest.mark.parametrize("lie", ["refused", "not zero", "nothing freed"])
def test_a_mount_without_holes_is_known_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str) -> None:
    def punch(fd: int, offset: int, length: int) -> None:
        if lie == "refused":
            raise OSError(errno.EOPNOTSUPP, "injected")
        if lie == "nothing freed":
            os.pwrite(fd, bytes(length), offset)

    monkeypatch.setattr(holes, "punch", punch)
    assert holes.probe(str(tmp_path)) == 0
    assert list(tmp_path.iterdir()) == []


async def test_without_holes_records_are_left_alone(
    make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch, book: Book
) -> None:
    monkeypatch.setattr(holes, "probe", lambda directory: 0)
    driver = await make_driver(pack_threshold=SIZE)
    driver.open_packs(book)
    entries = await Appends(driver).put(*(os.urandom(SIZE) for _ in range(5)))
    await driver.discard_many([entry.locator for entry in entries])
    for entry in entries:
        assert len(await driver.read(entry.locator, 0, SIZE)) == SIZE


async def test_records_with_their_claims_a_few_at_a_time(driver: ObjectsDriver) -> None:
    entries = await Appends(driver).put(*(b"x" * number for number in range(10)))
    pack = parse_locator(entries[0].locator).pack
    found, offset = await driver.list_records(pack, 0, 3)
    calls = 1
    while offset:
        more, offset = await driver.list_records(pack, offset, 3)
        found += more
        calls += 1
    assert calls == 4
    assert [record.locator for record in found] == [entry.locator for entry in entries]
    assert [record.recovery_header for record in found] == [b"claim of %d bytes" % number for number in range(10)]
    assert [record.total for record in found] == [parse_locator(entry.locator).total for entry in entries]
    with pytest.raises(BlobMissing):
        await driver.list_records(0xDEAD, 0, 3)


async def test_a_moved_record_is_the_same_blob(driver: ObjectsDriver, root: Path) -> None:
    bodies = [os.urandom(1000 + number) for number in range(50)]
    entries = await Appends(driver).put(*bodies)
    moved = await driver.move([entry.locator for entry in entries])
    assert set(moved) == {entry.locator for entry in entries}
    for entry, body in zip(entries, bodies, strict=True):
        new = moved[entry.locator]
        assert driver.blob_id(new) == entry.blob_id
        assert parse_locator(new).pack != parse_locator(entry.locator).pack, "a pack of those that were moved"
        assert parse_locator(new).total == parse_locator(entry.locator).total
        assert await driver.read(new, 0, len(body)) == body
        assert await driver.read(entry.locator, 0, len(body)) == body
    (target,) = {parse_locator(new).pack for new in moved.values()}
    records, _ = await driver.list_records(target, 0, 100)
    assert {record.recovery_header for record in records} == {b"claim of %d bytes" % len(body) for body in bodies}
    (late,) = await Appends(driver).put(b"goes where PUTs go")
    assert parse_locator(late.locator).pack != target


async def test_damage_is_not_moved(driver: ObjectsDriver, root: Path) -> None:
    entries = await Appends(driver).put(b"whole", b"flipped", b"last")
    (pack,) = packs(root)
    content = bytearray(pack.read_bytes())
    content[content.index(b"flipped")] ^= 1
    pack.write_bytes(bytes(content))
    wrong = entries[0].locator.rpartition(".")[0] + ".99"
    moved = await driver.move([wrong, "p:dead.40.99.1", *(entry.locator for entry in entries)])
    assert set(moved) == {entries[0].locator, entries[2].locator}


async def test_a_relaxed_store_syncs_what_it_moves(
    make_driver: MakeDriver, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written long ago must not be lost to a power cut because it was moved a moment before."""
    driver = await make_driver(durability=Durability.RELAXED, pack_threshold=SIZE)
    driver.open_packs(book)
    real, synced = os.fdatasync, []

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        real(fd)

    monkeypatch.setattr("sluice_s3.storage_drivers.packs.writer.os.fdatasync", sync)
    (entry,) = await Appends(driver).put(b"body")
    assert synced == []
    moved = await driver.move([entry.locator])
    assert [Path(path).stem for path in synced] == [f"{parse_locator(moved[entry.locator]).pack:016x}"]


async def test_a_move_that_fails_says_so(driver: ObjectsDriver, book: Book) -> None:
    (entry,) = await Appends(driver).put(b"body")
    book.refuse = RuntimeError("no pack for you")
    with pytest.raises(RuntimeError):
        await driver.move([entry.locator])
    book.refuse = None
    assert len(await driver.move([entry.locator])) == 1
    await driver.close_packs()
    with pytest.raises(StoreFailed):
        await driver.move([entry.locator])


async def test_a_whole_pack_goes(driver: ObjectsDriver, root: Path, book: Book) -> None:
    entries = await Appends(driver).put(b"one", b"two")
    pack = parse_locator(entries[0].locator).pack
    locator = driver.pack_locator(pack)
    assert driver.whole_pack(locator) == pack
    assert driver.whole_pack(entries[0].locator) == 0
    assert all(entry.locator.startswith(driver.pack_prefix(pack)) for entry in entries)
    assert driver.packed(locator) is None
    assert [found async for found in driver.packs()] == [pack]
    file = await driver.pack_file(pack)
    assert file is not None
    assert file.size == format.PACK_HEADER + sum(parse_locator(entry.locator).total for entry in entries)
    assert await driver.read(entries[0].locator, 0, 3) == b"one"
    await driver.discard_many([locator, *(entry.locator for entry in entries)])
    assert packs(root) == []
    assert await driver.pack_file(pack) is None
    assert await driver.read(entries[0].locator, 0, 3) == b"one", "through the descriptor that is open"
    await driver.close_unlinked()
    with pytest.raises(BlobMissing):
        await driver.read(entries[0].locator, 0, 3)
