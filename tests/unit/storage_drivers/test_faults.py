"""The local driver when the mount, the client or the caller fails: no error leaves anything a reader could find."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.errors import DriverError, ReadOnlyStore, StoreFailed, StoreFull, map_errors
from sluice_s3.storage_drivers.local import LocalDriver
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.support.waiting import eventually_async
from tests.unit.storage_drivers.conftest import HastyFuse, MakeDriver
from tests.unit.storage_drivers.tools import Pieces, content, fail_nth, stored

pytestmark = pytest.mark.slow


# what the driver of NFS does otherwise when it writes: test_parts.py
@pytest.fixture(params=[LocalDriver, HastyFuse], ids=["local", "fuse"])
def driver_class(request: pytest.FixtureRequest) -> type[ObjectsDriver]:
    driver: type[ObjectsDriver] = request.param
    return driver


PUTS = [(b"whole",), (b"in ", b"three ", b"pieces")]


@pytest.mark.parametrize("pieces", PUTS, ids=["whole", "pieces"])
@pytest.mark.parametrize(
    ("call", "nth", "code", "expected"),
    [
        ("open", 1, errno.ENOSPC, StoreFull),
        ("open", 1, errno.EROFS, ReadOnlyStore),
        ("open", 1, errno.ENOENT, StoreFailed),
        ("open", 1, errno.EMFILE, StoreFailed),
        ("write", 1, errno.ENOSPC, StoreFull),
        ("write", 1, errno.EDQUOT, StoreFull),
        ("write", 1, errno.EIO, StoreFailed),
        ("fsync", 1, errno.EIO, StoreFailed),
        ("fsync", 1, errno.ENOSPC, StoreFull),
        ("fsync", 2, errno.EIO, StoreFailed),
        ("close", 1, errno.EIO, StoreFailed),
        ("close", 1, errno.EDQUOT, StoreFull),
        ("close", 2, errno.EIO, StoreFailed),
    ],
)
async def test_a_failed_call_fails_the_put(
    driver: ObjectsDriver,
    root: Path,
    pieces: tuple[bytes, ...],
    call: str,
    nth: int,
    code: int,
    expected: type[DriverError],
) -> None:
    if call == "write" and len(pieces) == 1:
        call = "pwritev"  # of body and footer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            f"sluice_s3.storage_drivers.fsutil.os.{call}", fail_nth(getattr(os, call), OSError(code, "injected"), nth)
        )
        with pytest.raises(expected):
            await driver.put(1, Pieces(*pieces))
        assert stored(root) == []
    locator = await driver.put(1, Pieces(*pieces))  # the driver itself has not failed
    assert await content(driver, locator, 0, 5) == b"".join(pieces)[:5]


async def test_the_last_of_several_writes_fails(
    driver: ObjectsDriver, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.fsutil.os.write", fail_nth(os.write, OSError(errno.ENOSPC, "full"), 3)
    )
    with pytest.raises(StoreFull):
        await driver.put(1, Pieces(b"a", b"b", b"c"))
    assert stored(root) == []


async def test_a_failed_sync_is_not_repeated(driver: ObjectsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def fsync(fd: int) -> None:
        calls.append(fd)
        raise OSError(errno.EIO, "injected")

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", fsync)
    with pytest.raises(StoreFailed):
        await driver.put(1, Pieces(b"a"))
    assert len(calls) == 1


async def test_what_cannot_be_unlinked_is_left(
    driver: ObjectsDriver, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "sluice_s3.storage_drivers.fsutil.os.pwritev", fail_nth(os.pwritev, OSError(errno.EIO, "injected"))
        )
        patch.setattr("sluice_s3.storage_drivers.fsutil.os.close", fail_nth(os.close, OSError(errno.EIO, "injected")))
        patch.setattr("sluice_s3.storage_drivers.fsutil.os.unlink", fail_nth(os.unlink, OSError(errno.EIO, "injected")))
        with pytest.raises(StoreFailed):
            await driver.put(1, Pieces(b"a"))
    assert stored(root) == ["0000000000000001"]
    assert await driver.discard_id(1)


@pytest.mark.parametrize("before", [(), (b"a",), (b"a", b"b")])
async def test_a_broken_body(driver: ObjectsDriver, root: Path, before: tuple[bytes, ...]) -> None:
    source = Pieces(*before, ValueError("broken off"))
    source.size = 100
    with pytest.raises(ValueError, match="broken off"):
        await driver.put(1, source)
    assert stored(root) == []


@pytest.mark.parametrize("pieces", PUTS, ids=["whole", "pieces"])
async def test_a_refused_body_is_never_synced(
    driver: ObjectsDriver, root: Path, pieces: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(fd: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", never)
    with pytest.raises(ValueError, match="bad digest"):
        await driver.put(1, Pieces(*pieces, refuse=ValueError("bad digest")))
    assert stored(root) == []


async def test_cancelled_while_the_client_is_slow(driver: ObjectsDriver, root: Path) -> None:
    waiting = asyncio.Event()

    async def forever() -> None:
        waiting.set()
        await asyncio.Event().wait()

    put = asyncio.create_task(driver.put(1, Pieces(b"a", b"b", forever(), b"c")))
    await waiting.wait()
    put.cancel()
    with pytest.raises(asyncio.CancelledError):
        await put
    assert stored(root) == []


@pytest.mark.parametrize("pieces", PUTS, ids=["whole", "pieces"])
@pytest.mark.parametrize("step", ["put.created", "put.written", "put.synced", "put.closed", "put.directory_synced"])
async def test_cancelled_in_every_step(
    make_driver: MakeDriver, root: Path, pieces: tuple[bytes, ...], step: str
) -> None:
    """The step runs to its end in its thread; the put ends only after the file is gone."""
    loop = asyncio.get_running_loop()
    reached, go_on = asyncio.Event(), threading.Event()

    def at(name: str) -> None:
        if name == step and not go_on.is_set():
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(30)

    driver = await make_driver(at=at)
    put = asyncio.create_task(driver.put(1, Pieces(*pieces)))
    await reached.wait()
    put.cancel()
    await asyncio.sleep(0)
    assert not put.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await put
    assert stored(root) == []


async def test_cancelled_before_a_thread_was_free(make_driver: MakeDriver, root: Path) -> None:
    go_on = threading.Event()
    driver = await make_driver(threads=1)
    stuck = driver._run_in_thread(go_on.wait, 30)
    put = asyncio.create_task(driver.put(1, Pieces(b"a")))
    await asyncio.sleep(0)
    put.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await put
    assert stuck.result() is True
    assert stored(root) == []


async def test_a_put_that_fails_on_a_closed_driver_leaves_the_rest(driver: ObjectsDriver, root: Path) -> None:
    async def close() -> None:
        await driver.close()

    with pytest.raises(StoreFailed):
        await driver.put(1, Pieces(b"a", close(), b"b"))
    assert stored(root) in ([], ["0000000000000001"])


async def test_a_cancelled_read_keeps_no_descriptor(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, driver = await make_driver(), await make_driver()  # what a process wrote itself needs no thread
    locator = await writer.put(1, Pieces(b"a"))
    loop = asyncio.get_running_loop()
    reached, go_on = asyncio.Event(), threading.Event()
    fstat = os.fstat

    def slow(fd: int) -> os.stat_result:
        loop.call_soon_threadsafe(reached.set)
        assert go_on.wait(30)
        return fstat(fd)

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fstat", slow)
    before = len(os.listdir("/proc/self/fd"))
    read = asyncio.create_task(driver.read(locator, 0, 1))
    await reached.wait()
    read.cancel()
    with pytest.raises(asyncio.CancelledError):
        await read
    go_on.set()
    await eventually_async(lambda: len(os.listdir("/proc/self/fd")) == before)


async def test_a_reader_that_raises_keeps_no_descriptor(driver: ObjectsDriver) -> None:
    locator = await driver.put(1, Pieces(b"a"))
    before = len(os.listdir("/proc/self/fd"))

    def take(_: object) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        await driver.feed(locator, 0, 1, take)
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_stat_that_fails_keeps_no_descriptor(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, driver = await make_driver(), await make_driver()  # what a process wrote itself is opened again
    locator = await writer.put(1, Pieces(b"a"))
    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fstat", fail_nth(os.fstat, OSError(errno.EIO, "injected")))
    with pytest.raises(StoreFailed):
        await driver.read(locator, 0, 1)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_many_at_once(make_driver: MakeDriver, root: Path) -> None:
    """More puts than threads, a third refused, a third cancelled: exactly the others are there."""
    driver = await make_driver(threads=3)

    async def one(number: int) -> str:
        refuse = ValueError("refused") if number % 3 == 1 else None
        return await driver.put(number << 8, Pieces(b"%d " % number, b"tail", refuse=refuse))

    puts = [asyncio.create_task(one(number)) for number in range(90)]
    await asyncio.sleep(0)
    for put in puts[2::3]:
        put.cancel()
    outcomes = await asyncio.gather(*puts, return_exceptions=True)
    good = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, str)]
    assert good == list(range(0, 90, 3))
    assert stored(root) == [f"{number << 8:016x}" for number in good]
    for number in good:
        body = b"%d tail" % number
        assert await content(driver, str(outcomes[number]), 0, len(body)) == body


def test_every_errno_becomes_a_driver_error() -> None:
    for code in errno.errorcode:
        with pytest.raises(DriverError) as caught, map_errors():
            raise OSError(code, "injected", "/secret/path")
        assert "secret" not in str(caught.value)
    with pytest.raises(StoreFailed), map_errors():
        raise OSError("without a number")
    with pytest.raises(KeyError), map_errors():
        raise KeyError
