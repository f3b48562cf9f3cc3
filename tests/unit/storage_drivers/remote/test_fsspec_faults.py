"""What a store over fsspec does when its place fails at any call."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.blobs.footer import CHUNK
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError, StoreFailed, StoreFull
from sluice_s3.storage_drivers.fsspec.contents import raise_generation, read_identity
from sluice_s3.storage_drivers.fsspec.filesystem import map_fsspec_errors
from sluice_s3.storage_drivers.fsspec.store import FsspecDriver
from tests.support.environment import ROOT
from tests.unit.storage_drivers.conftest import MakeStore
from tests.unit.storage_drivers.faulty import FAULTS, LateFileSystem
from tests.unit.storage_drivers.places import Place, SshServer, memory_place
from tests.unit.storage_drivers.tools import Pieces, content

pytestmark = pytest.mark.slow

BODY = os.urandom(2 * CHUNK + 500)
PIECES = (BODY[:CHUNK], BODY[CHUNK : 2 * CHUNK], BODY[2 * CHUNK :])
ERRORS: dict[str, tuple[Callable[[], Exception], type[DriverError]]] = {
    "full": (lambda: OSError(errno.ENOSPC, "full"), StoreFull),
    "input/output": (lambda: OSError(errno.EIO, "io"), StoreFailed),
    "no errno": (lambda: OSError("Failure"), StoreFailed),
    "dropped": (lambda: EOFError("connection dropped"), StoreFailed),
    "something of the package's own": (lambda: RuntimeError("/a/path"), StoreFailed),
}


@pytest.fixture(autouse=True)
def no_faults() -> Iterator[None]:
    FAULTS.clear()
    yield
    FAULTS.clear()


@pytest.fixture(params=["faulty", "late", "refusing"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "faulty":
        return memory_place("faulty")
    name = uuid4().hex
    return Place(f"{request.param}://{name}", {}, LateFileSystem(), name)


async def reads(store: FsspecDriver, blob_id: int, body: bytes) -> bool:
    """Whether a blob is whole; it must not read as anything else."""
    try:
        found = await content(store, store.locator(blob_id), 0, len(body))
    except (BlobMissing, BlobDamaged):
        assert not store.contents().intact(store.locator(blob_id))
        return False
    assert found == body
    return True


@pytest.mark.parametrize("kind", list(ERRORS))
@pytest.mark.parametrize("pieces", [PIECES, (b"small",)], ids=["large", "small"])
async def test_a_put_that_fails_leaves_nothing(
    store: FsspecDriver, place: Place, kind: str, pieces: tuple[bytes, ...]
) -> None:
    body = b"".join(pieces)
    make, expected = ERRORS[kind]
    for nth in range(1, 50):
        FAULTS.set(nth, make())
        try:
            await store.put(nth, Pieces(*pieces), make_header=lambda: b"claim")
        except expected as error:
            told = str(error)
        else:
            struck = FAULTS.struck
            FAULTS.clear()
            assert await reads(store, nth, body)
            if not struck:
                break
            continue
        assert "/a/path" not in told, "an error tells no path"
        failed = "rm_file" not in FAULTS.calls[nth - 1 : nth]
        FAULTS.clear()
        if failed:
            assert not await reads(store, nth, body)
            assert f"{nth:016x}" not in place.stored("")
        await store.discard(store.locator(nth))
    else:
        raise AssertionError("it never came to an end")
    assert nth > 2
    assert await reads(store, nth, body)


async def test_what_cannot_be_taken_away_is_no_blob(store: FsspecDriver) -> None:
    for nth in range(1, 50):
        FAULTS.set(nth, OSError(errno.EIO, "gone for good"), lasting=True)
        try:
            await store.put(nth, Pieces(*PIECES))
        except StoreFailed:
            FAULTS.clear()
            await reads(store, nth, BODY)
        else:
            assert not FAULTS.struck
            return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_source_that_fails_leaves_nothing(store: FsspecDriver, place: Place, at: int) -> None:
    class Broke(Exception):
        pass

    pieces: list[Any] = list(PIECES)
    pieces.insert(at, Broke())
    with pytest.raises(Broke):
        await store.put(1, Pieces(*pieces))
    for refused in (Pieces(*PIECES, refuse=Broke()), Pieces(b"whole", refuse=Broke())):
        with pytest.raises(Broke):
            await store.put(2, refused)

    def no_recovery_header() -> bytes:
        raise Broke

    with pytest.raises(Broke):
        await store.put(3, Pieces(*PIECES), make_header=no_recovery_header)
    assert place.stored("") == ["store.json"]


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_cancelled_put_leaves_nothing(store: FsspecDriver, place: Place, at: int) -> None:
    reached = asyncio.Event()

    async def wait() -> None:
        reached.set()
        await asyncio.Event().wait()

    pieces: list[Any] = list(PIECES)
    waiting = wait()
    pieces.insert(at, waiting)
    task = asyncio.create_task(store.put(1, Pieces(*pieces)))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert "0000000000000001" not in place.stored("")


async def test_an_object_store_shows_nothing_of_what_failed() -> None:
    driver = FsspecDriver(f"late://{uuid4().hex}", threads=2)
    await driver.start()
    FAULTS.clear()
    with pytest.raises(RuntimeError):
        await driver.put(1, Pieces(*PIECES, RuntimeError()))
    assert "part" in FAULTS.calls
    assert "discard" in FAULTS.calls
    assert "publish" not in FAULTS.calls
    assert driver.probe is not None
    assert "no exclusive create" in driver.probe.line
    await driver.close()


@pytest.mark.parametrize("pieces", [PIECES, (b"again",)], ids=["large", "small"])
async def test_what_is_there_is_never_taken_away(store: FsspecDriver, place: Place, pieces: tuple[bytes, ...]) -> None:
    assert store.probe is not None
    assert store.probe.exclusive is not place.url.startswith("late:")
    locator = await store.put(1, Pieces(b"first"))
    for nth in range(1, 50):
        FAULTS.set(nth, OSError(errno.EIO, "io"))
        with pytest.raises(StoreFailed):
            await store.put(1, Pieces(*pieces))
        struck = FAULTS.struck
        FAULTS.clear()
        assert await content(store, locator, 0, 5) == b"first"
        if not struck:
            return
    raise AssertionError("it never came to an end")


@pytest.mark.parametrize("place", ["faulty"], indirect=True)
async def test_reads_fail_and_work_again(make_store: MakeStore) -> None:
    locator = await (await make_store()).put(1, Pieces(*PIECES))
    for nth in range(1, 20):
        store = await make_store()
        FAULTS.set(nth, OSError(errno.EIO, "io"))
        if await _outcome(store, locator):
            assert not FAULTS.struck
            break
        assert FAULTS.struck
        FAULTS.clear()
        assert await content(store, locator, 0, len(BODY)) == BODY
    assert nth > 3


@pytest.mark.parametrize("place", ["faulty"], indirect=True)
async def test_a_dropped_connection_is_made_anew_once(make_store: MakeStore) -> None:
    locator = await (await make_store()).put(1, Pieces(*PIECES))
    for nth in range(1, 20):
        store = await make_store()
        FAULTS.set(nth, EOFError())
        assert await _outcome(store, locator), "the reader does not notice"
        if not FAULTS.struck:
            break
    assert nth > 3
    FAULTS.set(1, EOFError(), lasting=True)
    assert not await _outcome(store, locator)


async def _outcome(store: FsspecDriver, locator: str) -> bool:
    try:
        return await content(store, locator, 0, len(BODY)) == BODY
    except StoreFailed:
        return False


@pytest.mark.parametrize("place", ["faulty"], indirect=True)
async def test_a_start_that_fails_can_be_repeated(place: Place) -> None:
    for nth in range(1, 400):
        FAULTS.set(nth, OSError(errno.EIO, "io"))
        driver = FsspecDriver(place.url, threads=1)
        try:
            await driver.start()
        except StoreFailed:
            continue
        finally:
            await driver.close()
        if not FAULTS.struck:
            break
    assert nth > 10
    FAULTS.clear()
    assert [name for name in place.stored("") if not name.startswith("probe-")] == ["store.json"]


@pytest.mark.parametrize("place", ["faulty"], indirect=True)
async def test_a_full_place_starts(make_store: MakeStore) -> None:
    store = await make_store()
    locator = await store.put(1, Pieces(b"x"))
    FAULTS.set(1, None)
    await store.close()
    again = FsspecDriver(store._remote._url, create=False)
    original = FAULTS.step

    def no_writes(name: str) -> None:
        original(name)
        if name == "write":
            raise OSError(errno.ENOSPC, "full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FAULTS, "step", no_writes)
        await again.start()
        assert await content(again, locator, 0, 1) == b"x"
        with pytest.raises(StoreFull):
            await again.put(2, Pieces(b"y"))
        await again.discard(locator)
    await again.close()


@pytest.mark.parametrize("place", ["faulty"], indirect=True)
async def test_the_next_generation_survives_a_crash_at_any_step(store: FsspecDriver) -> None:
    first = store.identity
    assert first is not None
    for nth in range(1, 60):
        before = read_identity(store._remote)
        assert before is not None
        FAULTS.set(nth, OSError(errno.EIO, "died"), lasting=True)
        try:
            done = raise_generation(store._remote)
        except StoreFailed:
            done = None
        FAULTS.clear()
        found = read_identity(store._remote)
        assert found is not None, "never a store without identity"
        assert found.store == first.store
        assert found.generation in (before.generation, before.generation + 1)
        if done is not None:
            assert found == done
            return
    raise AssertionError("it never came to an end")


async def test_a_journal_ends_with_its_first_error(store: FsspecDriver) -> None:
    first = [JournalRecord(7, b"claim", b"body")]
    await store.write_journal(5, first)
    FAULTS.set(1, OSError(errno.ENOSPC, "full"), lasting=True)
    with pytest.raises(StoreFull):
        await store.write_journal(5, first)
    FAULTS.clear()
    with pytest.raises(StoreFailed):
        await store.write_journal(5, first)
    assert list(store.contents().journal(5)) == first


def test_errors_have_one_translation() -> None:
    assert isinstance(map_fsspec_errors(FileNotFoundError("/x"), "f:1"), BlobMissing)
    assert not isinstance(map_fsspec_errors(FileNotFoundError("/x")), BlobMissing)
    assert isinstance(map_fsspec_errors(OSError(errno.EDQUOT, "")), StoreFull)
    assert str(map_fsspec_errors(KeyError("secret"))) == "KeyError"
    own = StoreFailed("own")
    assert map_fsspec_errors(own) is own


# what has to be installed
def test_packages_are_imported_when_they_are_used() -> None:
    check = "sys.exit(bool({'fsspec', 'paramiko'} & sys.modules.keys()))"
    code = f"import sys, sluice_s3.storage_drivers.fsspec.store; {check}"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


async def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    driver = FsspecDriver("memory://x")
    with pytest.raises(StoreFailed, match=r"pip install 'sluice-s3\[fsspec\]'"):
        await driver.start()
    await driver.close()


async def test_without_paramiko(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    driver = FsspecDriver("sftp://host/x")
    with pytest.raises(StoreFailed, match=r"pip install 'sluice-s3\[fsspec\]'"):
        await driver.start()
    await driver.close()


@pytest.mark.parametrize("url", ["nosuch://x", "adl://x/y"])
async def test_without_the_filesystem_of_a_scheme(url: str) -> None:
    driver = FsspecDriver(url)
    with pytest.raises(StoreFailed):
        await driver.start()
    await driver.close()


# ssh
async def test_a_session_that_is_cut(ssh: SshServer, tmp_path: Path) -> None:
    place = ssh.place(tmp_path / "store")
    driver = FsspecDriver(place.url, threads=2, options=place.options)
    await driver.start()
    locator = await driver.put(1, Pieces(*PIECES))
    ssh.cut()
    assert await content(driver, locator, 0, len(BODY)) == BODY, "reads go on over a new one"
    ssh.cut()
    await driver.discard(await driver.put(4, Pieces(b"so do writes that begin")))

    async def cut() -> None:
        ssh.cut()

    with pytest.raises(StoreFailed):
        await driver.put(2, Pieces(*PIECES[:2], cut(), PIECES[2]))
    assert place.stored() == ["0000000000000001"]
    assert await content(driver, await driver.put(3, Pieces(*PIECES)), 0, len(BODY)) == BODY
    await driver.close()


async def test_a_session_that_hangs_is_given_up(
    ssh: SshServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.fsspec.sftp.SILENCE_SECONDS", 3.0)
    place = ssh.place(tmp_path / "store")
    driver = FsspecDriver(place.url, threads=1, options=place.options)
    await driver.start()
    locator = await driver.put(1, Pieces(b"body"))
    ssh.cut(signal.SIGSTOP)
    assert await content(driver, locator, 0, 4) == b"body"
    ssh.cut(signal.SIGKILL)
    await driver.close()


async def test_a_server_that_is_down(ssh: SshServer, tmp_path: Path) -> None:
    place = ssh.place(tmp_path / "store")
    driver = FsspecDriver(place.url, threads=1, options=place.options)
    ssh.stop()
    try:
        with pytest.raises(StoreFailed):
            await driver.start()
    finally:
        ssh.start()
    await driver.start()
    await driver.close()


async def test_a_host_that_is_not_known(ssh: SshServer, tmp_path: Path) -> None:
    place = ssh.place(tmp_path / "store", known_hosts=str(tmp_path / "none"))
    driver = FsspecDriver(place.url, threads=1, options=place.options)
    with pytest.raises(StoreFailed, match="known hosts"):
        await driver.start()
    await driver.close()
    assert not (tmp_path / "store").exists()
    trusting = FsspecDriver(place.url, threads=1, options={**place.options, "host_key_policy": "auto_add"})
    await trusting.start()
    await trusting.close()
