"""A file or a record that is not what was written is never given to a reader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.blobs import footer
from sluice_s3.storage_drivers.blobs import reader as blob_reader
from sluice_s3.storage_drivers.blobs.footer import CHUNK, ChunkChecks
from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, content

SIZE = 3 * CHUNK + 1000
BODY = os.urandom(SIZE)
CLAIM = b'["put",1,2,"key"]'


def flip(path: Path, at: int) -> None:
    """Flip one bit, and set the time of the last change back, as rot would leave it."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 4]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def zero(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(bytes(length))


def swap(path: Path) -> None:
    """Two chunks, each of them whole."""
    with path.open("r+b") as file:
        first, second = file.read(CHUNK), file.read(CHUNK)
        file.seek(0)
        file.write(second + first)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "bit in the first chunk": lambda path: flip(path, 17),
    "bit in the last chunk": lambda path: flip(path, SIZE - 1),
    "bit in the checks": lambda path: flip(path, SIZE + 3),
    "bit in the claim": lambda path: flip(path, SIZE + 4 * 8 + 2),
    "bit in the trailer": lambda path: flip(path, -20),
    "last bit": lambda path: flip(path, -1),
    "zeroed chunk": lambda path: zero(path, CHUNK, CHUNK),
    "zeroed page": lambda path: zero(path, 2 * CHUNK + 4096, 4096),
    "zeroed whole": lambda path: zero(path, 0, path.stat().st_size),
    "cut by a byte": lambda path: os.truncate(path, path.stat().st_size - 1),
    "cut behind the body": lambda path: os.truncate(path, SIZE),
    "cut in the body": lambda path: os.truncate(path, CHUNK),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: os.truncate(path, path.stat().st_size + 1),
    "swapped chunks": swap,
}


async def written(driver: ObjectsDriver, root: Path, blob_id: int = 7) -> tuple[str, Path]:
    locator = await driver.put(blob_id, Pieces(BODY[:1_500_000], BODY[1_500_000:]), make_header=lambda: CLAIM)
    return locator, root / f"data/{blob_id & 0xFF:02x}/{blob_id:016x}"


@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("read_before", [False, True])
async def test_a_damaged_file_is_not_read(driver: ObjectsDriver, root: Path, damage: str, read_before: bool) -> None:
    locator, path = await written(driver, root)
    if read_before:
        assert await content(driver, locator, 0, SIZE) == BODY
    DAMAGES[damage](path)
    taken = bytearray()
    with pytest.raises(BlobDamaged):
        await driver.feed(locator, 0, SIZE, taken.extend)
    assert BODY.startswith(taken), "what was given before was right"
    assert len(taken) < SIZE
    assert driver.try_read(locator, SIZE - 10, 10) in (None, BODY[-10:])


async def test_the_footer_of_another_blob_is_none(driver: ObjectsDriver, root: Path) -> None:
    _, path = await written(driver, root)
    locator, other = await written(driver, root, 8)
    other.write_bytes(path.read_bytes())
    with pytest.raises(BlobDamaged):
        await content(driver, locator, 0, 1)


async def test_only_what_is_read_is_checked(driver: ObjectsDriver, root: Path) -> None:
    locator, path = await written(driver, root)
    flip(path, CHUNK + 5)
    assert await content(driver, locator, 10, 100) == BODY[10:110]
    assert await content(driver, locator, 2 * CHUNK, CHUNK + 1000) == BODY[2 * CHUNK :]
    with pytest.raises(BlobDamaged):
        await content(driver, locator, CHUNK - 1, 2)


async def counts(driver: ObjectsDriver, locator: str) -> list[int]:
    """The bytes of each slice that a reader of the whole body is given."""
    found: list[int] = []
    while (at := sum(found)) < SIZE:
        opened = await driver.read(locator, at, SIZE - at)
        assert isinstance(opened, FileSlice)
        found.append(opened.count)
        opened.release()
    return found


async def test_who_wrote_a_file_reads_it_whole(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver()
    locator, path = await written(driver, root)
    assert await counts(driver, locator) == [SIZE]
    os.utime(path)
    assert await counts(driver, locator) == [CHUNK, 2 * CHUNK + 1000], "it was touched"


async def test_what_another_process_wrote_is_checked_when_it_is_first_read(make_driver: MakeDriver, root: Path) -> None:
    locator, _ = await written(await make_driver(), root)
    other = await make_driver()
    assert await counts(other, locator) == [CHUNK, 2 * CHUNK + 1000], "in parts, so that the first comes soon"
    assert await counts(other, locator) == [SIZE]


async def test_a_chunk_is_not_believed_for_ever(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver()
    locator, path = await written(driver, root)
    assert await content(driver, locator, 0, SIZE) == BODY
    before = path.stat()
    flip(path, 5)
    # as if it rotted unseen: what is remembered of the file fits it
    known = driver._files._files[7]
    assert known.stamp[0] == before.st_mtime_ns
    found = path.stat()
    known.stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    assert await content(driver, locator, 0, SIZE) != BODY, "that is the window"
    known.until = time.monotonic() - 1
    with pytest.raises(BlobDamaged):
        await content(driver, locator, 0, SIZE)


async def test_what_is_remembered_is_bounded(driver: ObjectsDriver, root: Path) -> None:
    driver._files = reader = blob_reader.BlobReader(max_open=3)
    for blob_id in range(1, 8):
        locator, _ = await written(driver, root, blob_id)
        assert await content(driver, locator, 0, 10) == BODY[:10]
    assert list(reader._files) == [5, 6, 7]


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK])
@pytest.mark.parametrize("piece", [1000, 300_000, CHUNK, 3 * CHUNK])
def test_checks_do_not_depend_on_the_pieces(tmp_path: Path, size: int, piece: int) -> None:
    if size > 1 and piece == 1000 and size > CHUNK:
        piece = 65_537
    body = os.urandom(size)
    checks = ChunkChecks(99)
    for start in range(0, size, piece):
        checks.update(memoryview(body)[start : start + piece])
    path = tmp_path / "blob"
    path.write_bytes(body + checks.footer(CLAIM))
    with path.open("rb") as file:
        found = footer.read_footer(file.fileno(), path.stat().st_size, 99, "blob")
    assert (found.body, found.recovery_header) == (size, CLAIM)
    for chunk in range(-(-size // CHUNK)):
        assert found.check(chunk) == footer.chunk_check(body[chunk * CHUNK : (chunk + 1) * CHUNK], 99)
