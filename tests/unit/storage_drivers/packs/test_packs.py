"""Packs: small bodies in append-only files. What is read is what was written, or an error; never anything else."""

from __future__ import annotations

import asyncio
import errno
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import AppendRequest, Durability
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed, StoreFull
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.packs import format
from tests.support.environment import sized
from tests.unit.storage_drivers.conftest import HastyEfs, MakeDriver
from tests.unit.storage_drivers.tools import Pieces, blobs, content, fail_nth

SALT = 77


class Book:
    """Numbers packs, and remembers which were sealed at what size."""

    def __init__(self) -> None:
        self.opened = 0x100
        self.sealed: dict[int, int] = {}
        self.refuse: Exception | None = None
        self.seals_to_refuse = 0

    def open_pack(self) -> int:
        if self.refuse is not None:
            raise self.refuse
        self.opened += 1
        return self.opened

    def seal_pack(self, pack_id: int, size: int) -> None:
        if self.seals_to_refuse:
            self.seals_to_refuse -= 1
            raise OSError("the index is away")
        self.sealed[pack_id] = size


class Appends:
    """Gives bodies to a driver and waits for their fate."""

    def __init__(self, driver: ObjectsDriver) -> None:
        self.driver = driver
        self.done: queue.SimpleQueue[AppendRequest] = queue.SimpleQueue()
        self.last = 0

    async def entry(self, body: bytes, refuse: Exception | None = None) -> AppendRequest:
        self.last += 1
        source = Pieces(body, refuse=refuse)
        piece = await source.read()
        assert await source.read() == b""
        return AppendRequest(self.last, piece, source, lambda: b"claim of %d bytes" % len(body), self.done.put, {})

    async def next(self) -> AppendRequest:
        """The next entry whose fate is known."""
        return await asyncio.to_thread(self.done.get, timeout=10)

    async def put(self, *bodies: bytes) -> list[AppendRequest]:
        entries = [await self.entry(body) for body in bodies]
        for entry in entries:
            self.driver.append(entry)
        return [await self.next() for _ in entries]


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def driver(make_driver: MakeDriver, book: Book) -> ObjectsDriver:
    driver = await make_driver(pack_threshold=4096, pack_size=64 * 1024)
    driver.open_packs(book)
    return driver


def packs(root: Path) -> list[Path]:
    return sorted((root / "data").rglob("*.pack"))


async def test_bodies_read_back(driver: ObjectsDriver, root: Path) -> None:
    appends = Appends(driver)
    bodies = [b"", b"a", os.urandom(4096), b"\0" * 100]
    nowait = driver.capabilities.nowait
    for entry, body in zip(await appends.put(*bodies), bodies, strict=True):
        assert entry.error is None
        assert await driver.read(entry.locator, 0, len(body)) == body
        assert driver.try_read(entry.locator, 0, len(body)) == (body if nowait else None)
        assert await content(driver, entry.locator, 0, len(body)) == body
        assert driver.blob_id(entry.locator) == entry.blob_id
        assert (await blobs(driver))[entry.locator] == len(body)
    assert await driver.read(entry.locator, 90, 10) == b"\0" * 10
    assert driver.try_read(entry.locator, 90, 10) == (b"\0" * 10 if nowait else None)
    assert len(packs(root)) == 1


async def test_reads_past_the_end(driver: ObjectsDriver) -> None:
    (entry,) = await Appends(driver).put(b"body")
    with pytest.raises(BlobDamaged):
        await driver.read(entry.locator, 0, 5)
    assert driver.try_read(entry.locator, 0, 5) is None


async def test_those_who_wait_share_a_sync(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch, book: Book) -> None:
    appends = Appends(driver)
    await appends.put(b"opens the pack")
    real, syncs, began, held = os.fdatasync, [], threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        syncs.append(fd)
        began.set()
        held.wait(10)
        real(fd)

    monkeypatch.setattr("sluice_s3.storage_drivers.packs.writer.os.fdatasync", slow)
    entries = [await appends.entry(b"%d" % number) for number in range(50)]
    driver.append(entries[0])
    assert await asyncio.to_thread(began.wait, 10)
    for entry in entries[1:]:
        driver.append(entry)
    await asyncio.sleep(0.05)
    held.set()
    assert [(await appends.next()).error for _ in entries] == [None] * 50
    assert len(syncs) <= 4
    assert book.opened == 0x101


async def test_relaxed_syncs_nothing(make_driver: MakeDriver, book: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = await make_driver(durability=Durability.RELAXED, pack_threshold=4096)
    driver.open_packs(book)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(f"sluice_s3.storage_drivers.packs.writer.os.{name}", lambda fd: pytest.fail("synced"))
    (entry,) = await Appends(driver).put(b"body")
    assert await driver.read(entry.locator, 0, 4) == b"body"


async def test_a_refused_body_fails_alone(driver: ObjectsDriver) -> None:
    appends = Appends(driver)
    entries = [await appends.entry(b"good"), await appends.entry(b"bad", ValueError("no")), await appends.entry(b"too")]
    for entry in entries:
        driver.append(entry)
    found = {entry.blob_id: entry for entry in [await appends.next() for _ in entries]}
    assert isinstance(found[2].error, ValueError)
    assert found[2].locator == ""
    assert await driver.read(found[1].locator, 0, 4) == b"good"
    assert await driver.read(found[3].locator, 0, 3) == b"too"
    assert len(await blobs(driver)) == 2


async def test_a_pack_whose_seal_failed_is_sealed_with_the_next(driver: ObjectsDriver, root: Path, book: Book) -> None:
    """While this process lives nothing else seals it, and nothing compacts it."""
    appends, book.seals_to_refuse = Appends(driver), 2
    for number in range(120):
        await appends.put(b"%3d" % number * 1000)
    await driver.close_packs()
    assert len(book.sealed) > 3
    assert book.sealed == {int(path.stem, 16): path.stat().st_size for path in packs(root)}


async def test_packs_roll_and_are_sealed(driver: ObjectsDriver, root: Path, book: Book) -> None:
    appends = Appends(driver)
    entries = []
    for _ in range(40):
        entries += await appends.put(os.urandom(4000))
    await driver.close_packs()
    assert len(packs(root)) >= 3
    assert book.sealed == {int(path.stem, 16): path.stat().st_size for path in packs(root)}
    assert all(size <= 64 * 1024 for size in book.sealed.values())
    for entry in entries:
        assert len(await driver.read(entry.locator, 0, 4000)) == 4000  # type: ignore[arg-type]


async def test_closed_packs_take_nothing(driver: ObjectsDriver) -> None:
    await driver.close_packs()
    with pytest.raises(StoreFailed):
        driver.append(await Appends(driver).entry(b"late"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(errno.ENOSPC, "injected"), StoreFull),
        (OSError(errno.EIO, "injected"), StoreFailed),
        (MemoryError(), MemoryError),  # of the lab: the thread ended, and all later writers waited for ever
    ],
)
@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
async def test_a_failed_call_seals_the_pack(
    driver: ObjectsDriver, book: Book, call: str, error: Exception, expected: type[Exception]
) -> None:
    appends = Appends(driver)
    (kept,) = await appends.put(b"durable before")
    end = driver.packed(kept.locator)
    assert end is not None
    with pytest.MonkeyPatch.context() as patch:
        stand_in = fail_nth(getattr(os, call), error)
        patch.setattr(f"sluice_s3.storage_drivers.packs.writer.os.{call}", stand_in)
        (lost,) = await appends.put(b"lost")
        assert isinstance(lost.error, expected)
        assert lost.locator == ""
        (after,) = await appends.put(b"after")
    assert driver.packed(after.locator) != driver.packed(kept.locator)
    assert after.locator.startswith("p:102.")
    assert await driver.read(kept.locator, 0, 14) == b"durable before"
    await driver.close_packs()
    assert book.sealed[0x101] == format.PACK_HEADER + end[1]


async def test_a_pack_that_cannot_be_opened(driver: ObjectsDriver, root: Path, book: Book) -> None:
    appends = Appends(driver)
    book.refuse = RuntimeError("no")
    (entry,) = await appends.put(b"body")
    assert entry.error is book.refuse
    book.refuse = None
    with pytest.MonkeyPatch.context() as patch:
        stand_in = fail_nth(os.fsync, OSError(errno.EIO, "injected"))
        patch.setattr("sluice_s3.storage_drivers.packs.writer.os.fsync", stand_in)
        (entry,) = await appends.put(b"body")
    assert isinstance(entry.error, StoreFailed)
    assert packs(root) == []
    (entry,) = await appends.put(b"body")
    assert entry.error is None


async def test_a_short_write_is_continued(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    appends = Appends(driver)
    await appends.put(b"opens the pack")
    real = os.pwritev
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.packs.writer.os.pwritev",
        lambda fd, buffers, at: real(fd, [b"".join(buffers)[:7]], at),
    )
    (entry,) = await appends.put(b"body" * 500)
    assert await driver.read(entry.locator, 0, 2000) == b"body" * 500


async def test_a_reader_of_a_pack_that_is_gone(driver: ObjectsDriver, root: Path) -> None:
    (entry,) = await Appends(driver).put(b"body")
    assert await driver.read(entry.locator, 0, 4) == b"body"
    await driver.discard_many([f"k:{0x101:016x}"])
    assert packs(root) == []
    assert await driver.read(entry.locator, 0, 4) == b"body"  # the descriptor is still open
    driver._packs.forget(0x101)
    with pytest.raises(BlobMissing):
        await driver.read(entry.locator, 0, 4)


async def test_a_pack_in_anothers_place(driver: ObjectsDriver, root: Path) -> None:
    appends = Appends(driver)
    (entry,) = await appends.put(b"body")
    await driver.close_packs()
    (path,) = packs(root)
    path.rename(path.with_name(f"{0x201:016x}.pack"))
    with pytest.raises(BlobDamaged):
        await driver.read(entry.locator.replace("p:101.", "p:201."), 0, 4)
    with pytest.raises(BlobMissing):
        await driver.read(entry.locator, 0, 4)


# the format
@pytest.fixture
def pack(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "pack", os.O_RDWR | os.O_CREAT)
    os.write(fd, format.pack_header(5, SALT))
    yield fd
    os.close(fd)


def add(fd: int, blob_id: int, body: bytes, claim: bytes = b"c", salt: int = SALT) -> int:
    offset = os.lseek(fd, 0, os.SEEK_END)
    os.write(fd, format.record_head(format.BLOB, blob_id, offset, claim, body, salt) + claim + body)
    return offset


def found(fd: int) -> list[int]:
    return [record.blob_id for record in format.walk(fd, SALT) if format.read_verified(fd, record, SALT) is not None]


def test_a_walk_finds_all(pack: int) -> None:
    for blob_id in range(300):
        add(pack, blob_id, os.urandom(blob_id * 37))
    assert found(pack) == list(range(300))
    assert format.read_salt(pack, 5) == SALT


def test_a_torn_tail_is_ignored(pack: int) -> None:
    for blob_id in range(3):
        offset = add(pack, blob_id, b"x" * 1000)
    for end in range(offset, offset + 1000, 7):
        os.ftruncate(pack, end)
        assert found(pack) == [0, 1]


@pytest.mark.parametrize("at", [0, 20, 47, 60])
def test_what_is_behind_a_damaged_record_is_found(pack: int, at: int) -> None:
    offsets = [add(pack, blob_id, b"x" * 1000) for blob_id in range(5)]
    os.pwrite(pack, b"\xff\xff", offsets[2] + at)
    assert found(pack) == [0, 1, 3, 4]


def test_a_hole_is_passed_over(pack: int) -> None:
    add(pack, 1, b"before")
    os.ftruncate(pack, 50 << 20)
    add(pack, 2, b"behind")
    assert found(pack) == [1, 2]


def test_a_body_that_looks_like_a_record_is_none(pack: int) -> None:
    """Neither the bytes of another pack's record nor those of a record that lies elsewhere."""
    offset = add(pack, 1, b"original" * 10)
    copied = os.pread(pack, 500, offset)
    inner = offset + len(copied) + format.RECORD_HEADER + 1
    foreign = format.record_head(format.BLOB, 9, inner + len(copied), b"", b"evil", SALT + 1) + b"evil"
    outer = add(pack, 2, copied + foreign)
    add(pack, 3, b"behind")
    os.pwrite(pack, b"\0" * 8, outer)  # its header is lost: now its body is searched
    assert found(pack) == [1, 3]


@settings(max_examples=sized(100, 5000), deadline=None)
@given(data=st.data())
def test_no_damage_is_ever_read(data: st.DataObject) -> None:
    """Whatever happens to the bytes of a record, it is read as it was written or not at all."""
    body = data.draw(st.binary(min_size=1, max_size=200))
    claim = data.draw(st.binary(max_size=40))
    whole = bytearray(format.record_head(format.BLOB, 7, 64, claim, body, SALT) + claim + body)
    before = bytes(whole)
    for at, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), min_size=1, max_size=4)
    ):
        whole[at] = value
    try:
        read = bytes(format.parse_record(memoryview(whole), 64, 7, SALT))
    except BlobDamaged:
        assert bytes(whole) != before
    else:
        assert read == body
        assert bytes(whole) == before


@pytest.mark.parametrize(("blob_id", "offset", "salt"), [(8, 64, SALT), (7, 65, SALT), (7, 64, SALT + 1)])
def test_a_record_is_read_only_as_itself(blob_id: int, offset: int, salt: int) -> None:
    whole = memoryview(format.record_head(format.BLOB, 7, 64, b"c", b"body", SALT) + b"cbody")
    assert format.parse_record(whole, 64, 7, SALT) == b"body"
    with pytest.raises(BlobDamaged):
        format.parse_record(whole, offset, blob_id, salt)


@pytest.mark.parametrize("driver_class", [HastyEfs])
@pytest.mark.parametrize("how", ["its end", "its bytes"])
async def test_a_record_that_another_host_wrote_is_waited_for(
    make_driver: MakeDriver, book: Book, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a client of NFS remembers of a pack may be from before the record was written."""
    writer = await make_driver(pack_threshold=4096, pack_size=64 * 1024)
    writer.open_packs(book)
    appends = Appends(writer)
    (first,) = await appends.put(b"first")
    reader = await make_driver(pack_threshold=4096, pack_size=64 * 1024)
    assert await reader.read(first.locator, 0, 5) == b"first"
    (second,) = await appends.put(b"second")
    pread, stale = os.pread, 4

    def remembered(fd: int, length: int, offset: int) -> bytes:
        nonlocal stale
        found = pread(fd, length, offset)
        if not stale or b"second" not in found:
            return found
        stale -= 1
        return b"" if how == "its end" else bytes(len(found))

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.pread", remembered)
    assert await reader.read(second.locator, 0, 6) == b"second"
    assert stale == 0


@pytest.mark.parametrize("driver_class", [HastyEfs])
async def test_a_record_that_stays_wrong_is_damaged(make_driver: MakeDriver, book: Book, root: Path) -> None:
    writer = await make_driver(pack_threshold=4096, pack_size=64 * 1024)
    writer.open_packs(book)
    (entry,) = await Appends(writer).put(b"body")
    (pack,) = packs(root)
    pack.write_bytes(pack.read_bytes().replace(b"body", b"bodY"))
    reader = await make_driver(pack_threshold=4096, pack_size=64 * 1024)
    with pytest.raises(BlobDamaged):
        await reader.read(entry.locator, 0, 4)
