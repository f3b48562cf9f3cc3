"""Journals are read as they were written, up to where they are torn."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import StoreFailed, StoreFull
from sluice_s3.storage_drivers.identity import NAME, TEMPORARY_NAME, lock_store, raise_generation, read_identity
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.offline_reader import Damaged, OfflineStoreReader
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, blobs, stored

FIRST = [JournalRecord(7, b"claim", b"body"), JournalRecord(9, b"", b"x" * 100_000)]
SECOND = [JournalRecord(11, b"c", b"")]


async def test_what_is_written_is_read(driver: ObjectsDriver, root: Path) -> None:
    length = await driver.write_journal(5, FIRST)
    assert length < await driver.write_journal(5, SECOND) == (root / "journals/0000000000000005.journal").stat().st_size
    await driver.end_journal(5)
    await driver.end_journal(5)
    contents = driver.contents()
    assert contents.journals() == [5]
    assert list(contents.journal(5)) == FIRST + SECOND
    assert await driver.check_journal(5)
    assert await blobs(driver) == {}, "a journal is no blob"
    await driver.discard_journals([5, 6])
    assert stored(root) == []
    assert await driver.check_journal(5)


async def test_a_journal_that_was_ended_is_not_gone_on_with(driver: ObjectsDriver) -> None:
    await driver.write_journal(5, FIRST)
    await driver.end_journal(5)
    with pytest.raises(StoreFailed):
        await driver.write_journal(5, SECOND)


async def test_a_torn_end_and_a_damaged_record(driver: ObjectsDriver, root: Path) -> None:
    await driver.write_journal(5, FIRST + SECOND)
    path = root / "journals/0000000000000005.journal"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    assert list(driver.contents().journal(5)) == FIRST
    damaged = bytearray(whole)
    damaged[whole.index(b"xxxx") + 5] ^= 1
    path.write_bytes(damaged)
    assert list(driver.contents().journal(5)) == [FIRST[0], None, *SECOND]
    assert not await driver.check_journal(5)
    path.write_bytes(whole[:30])
    assert list(driver.contents().journal(5)) == []


async def test_a_failed_sync_ends_it(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = await make_driver()
    await driver.write_journal(5, FIRST)
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:

        def full(_: int) -> None:
            raise OSError(errno.EDQUOT, "quota")

        patch.setattr("sluice_s3.storage_drivers.objects.journals.os.fdatasync", full)
        with pytest.raises(StoreFull):
            await driver.write_journal(5, SECOND)
    assert len(os.listdir("/proc/self/fd")) == before - 1
    with pytest.raises(StoreFailed):
        await driver.write_journal(5, SECOND)


async def test_contents_of_a_store(driver: ObjectsDriver, root: Path) -> None:
    assert driver.contents().empty
    locator = await driver.put(9, Pieces(b"body"), make_header=lambda: b"claim")
    other = await driver.put(10, Pieces(b"other"))
    (root / "data/00/notes.txt").write_text("not ours")
    contents = OfflineStoreReader(root)
    assert not contents.empty
    found = list(contents.files())
    assert [(blob.locator, blob.size, blob.recovery_header) for blob in found if not isinstance(blob, Damaged)] == [
        (locator, 4, b"claim"),
        (other, 5, b""),
    ]
    assert contents.intact(locator)
    path = root / "data/09/0000000000000009"
    path.write_bytes(b"b0dy" + path.read_bytes()[4:])
    assert not contents.intact(locator)
    os.truncate(path, 20)
    assert isinstance(next(contents.files()), Damaged)
    assert not contents.intact("f:00000000000000ff")


async def test_the_next_generation_survives_a_crash_at_any_step(
    make_driver: MakeDriver, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await make_driver()).identity
    assert first is not None
    for step in range(1, 20):
        calls = iter(range(1, 100))

        def die(original: object, step: int = step, calls: object = calls) -> object:
            def call(*arguments: object, **options: object) -> object:
                if next(calls) == step:  # type: ignore[call-overload]
                    raise KeyboardInterrupt
                return original(*arguments, **options)  # type: ignore[operator]

            return call

        before = read_identity(root)
        assert before is not None
        with monkeypatch.context() as patch:
            patch.setattr("sluice_s3.storage_drivers.identity.os.unlink", die(os.unlink))
            patch.setattr("sluice_s3.storage_drivers.fsutil.os.write", die(os.write))
            patch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", die(os.fsync))
            try:
                done = raise_generation(root)
            except KeyboardInterrupt:
                done = None
        found = read_identity(root)
        assert found is not None, "never a store without identity"
        assert found.store == first.store
        assert found.generation in (before.generation, before.generation + 1)
        if done is not None:
            assert found == done
            assert not (root / TEMPORARY_NAME).exists()
            return
    raise AssertionError("it never came to an end")


async def test_a_store_is_held_by_many_or_by_one(root: Path, make_driver: MakeDriver) -> None:
    driver = await make_driver()
    await make_driver()
    with pytest.raises(StoreFailed, match="in use"):
        lock_store(root, alone=True)
    await driver.close()
    assert (root / NAME).exists()


async def test_journals_of_an_older_version_lie_among_the_blobs(driver: ObjectsDriver, root: Path) -> None:
    length = await driver.write_journal(5, FIRST)
    await driver.end_journal(5)
    (root / "journals/0000000000000005.journal").rename(root / "data/05/0000000000000005.journal")
    contents = driver.contents()
    assert contents.journals() == [5]
    assert contents.journal_size(5) == length
    assert list(contents.journal(5)) == FIRST
    assert not contents.empty
    assert await driver.check_journal(5)
    assert await driver.journal_sizes() == {5: length}
    newer = await driver.write_journal(6, SECOND)
    assert await driver.journal_sizes() == {6: newer}, "of the older ones the index knows by now"
    await driver.discard_journals([5, 6])
    assert stored(root) == []


async def test_the_records_behind_a_length(driver: ObjectsDriver) -> None:
    length = await driver.write_journal(5, FIRST)
    assert await driver.journal_tail(5, length) == []
    whole = await driver.write_journal(5, SECOND)
    assert await driver.journal_sizes() == {5: whole}
    assert await driver.journal_tail(5, length) == [record._replace(body=b"") for record in SECOND]
    assert len(await driver.journal_tail(5, 0)) == len(FIRST + SECOND)


async def test_a_store_on_nfs_is_held_by_many_or_by_one(
    root: Path, make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux has NFS lock by byte ranges, for which a descriptor needs the right to write or to read."""
    real = fcntl.flock

    def flock(descriptor: int, how: int) -> None:
        mode = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE
        if mode == (os.O_RDONLY if how & fcntl.LOCK_EX else os.O_WRONLY):
            raise OSError(errno.EBADF, "as nfs4_file_flock says")
        real(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    driver = await make_driver()
    with pytest.raises(StoreFailed, match="in use"):
        lock_store(root, alone=True)
    await driver.close()
    alone = lock_store(root, alone=True)
    assert alone is not None
    with pytest.raises(StoreFailed, match="being rebuilt"):
        await make_driver()
    os.close(alone)
