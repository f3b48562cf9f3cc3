"""What a mount is tried for, and which stores refuse to start."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import itertools
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_s3.storage_drivers import mountinfo
from sluice_s3.storage_drivers.base import Durability
from sluice_s3.storage_drivers.errors import StoreFailed, StoreUnfit
from sluice_s3.storage_drivers.probing import probe, sync_trials
from sluice_s3.storage_drivers.probing import trials as probe_trials
from sluice_s3.storage_drivers.probing.known_mounts import sync_refusal
from sluice_s3.storage_drivers.probing.probe import Progress, measure, measure_store, refusal_reason, run_with_timeout
from sluice_s3.storage_drivers.probing.scratch import Scratch
from sluice_s3.storage_drivers.probing.trials import AT_START, Capability
from tests.unit.storage_drivers.conftest import MakeDriver
from tests.unit.storage_drivers.tools import Pieces, content

NEEDED = [
    Capability.EXCLUSIVE_CREATE,
    Capability.READ_BACK,
    Capability.SIZE_AFTER_CLOSE,
    Capability.FSYNC_FILE,
    Capability.FSYNC_DIRECTORY,
    Capability.RENAME_OVER,
    Capability.READ_AFTER_UNLINK,
    Capability.RMDIR_REFUSES,
    Capability.TRUNCATE_CLEARS,
]


def failing(code: int) -> Callable[..., object]:
    def call(*_: object, **__: object) -> object:
        raise OSError(code, "injected")

    return call


def test_a_local_disk_does_everything_needed(tmp_path: Path) -> None:
    (tmp_path / "somebody's").mkdir()
    (tmp_path / "somebody's/file").write_text("kept")
    found = measure(tmp_path)
    assert {trial.ability for trial in found.trials} == set(Capability)
    assert [ability for ability in NEEDED if not found.can(ability)] == []
    assert refusal_reason(found, Durability.FULL) is None
    assert {"create", "fsync", "fsync directory", "read", "unlink"} <= {latency.call for latency in found.latencies}
    assert all(0 < latency.median <= latency.worst for latency in found.latencies)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "somebody's"]


def test_json(tmp_path: Path) -> None:
    told = json.loads(json.dumps(measure(tmp_path).to_json()))
    assert set(told["trials"]) == set(Capability)
    assert told["trials"]["exclusive create"] == {"works": True, "detail": "", "error": ""}
    assert told["refused"] == {"full": None, "relaxed": None}
    assert told["latencies_ms"]["fsync"]["calls"] > probe.ROUNDS
    assert told["mount"]["kind"] != "unknown"


@pytest.mark.parametrize(
    ("works", "says"),
    [
        ((True, True), "all checks passed"),
        ((True, None), "no check failed; could not be tried: fsync of a file"),
        ((False, True), "cannot: exclusive create"),
        ((False, None), "cannot: exclusive create; could not be tried: fsync of a file"),
    ],
)
def test_the_line_in_the_log_says_what_failed_and_nothing_else(works: tuple[bool, bool | None], says: str) -> None:
    abilities = (Capability.EXCLUSIVE_CREATE, Capability.FSYNC_FILE)
    trials = tuple(probe.Check(ability, one, "") for ability, one in zip(abilities, works, strict=True))
    found = probe.Probe(mountinfo.Mount("ext4", "/dev/sda", "/mnt", ""), trials, (), 0, 0.0)
    assert found.line == f"ext4 at /mnt; {says.replace('fsync of a file', Capability.FSYNC_FILE.value)}"


@pytest.mark.parametrize(
    ("call", "ability"),
    [
        ("os.rename", Capability.RENAME_OVER),
        ("os.link", Capability.LINK),
        ("os.setxattr", Capability.XATTR),
        ("os.copy_file_range", Capability.COPY_RANGE),
        ("os.preadv", Capability.NOWAIT),
        ("os.sendfile", Capability.SENDFILE),
        ("fcntl.flock", Capability.FLOCK),
        ("holes.allocate", Capability.FALLOCATE),
        ("holes.punch", Capability.PUNCH),
    ],
)
def test_what_a_mount_cannot_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, ability: Capability
) -> None:
    monkeypatch.setattr(f"sluice_s3.storage_drivers.probing.trials.{call}", failing(errno.EOPNOTSUPP))
    found = measure(tmp_path)
    assert not found.can(ability)
    assert found.trial(ability).works is False
    assert refusal_reason(found, Durability.FULL) is None, "the layout needs none of them"
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_goes_with_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.storage_drivers.probing.trials.os.rmdir", lambda path: None)
    seen = measure(tmp_path).trial(Capability.RMDIR_REFUSES)
    assert (seen.works, "gone" in seen.detail) == (False, True)


def test_old_bytes_that_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    truncate = os.ftruncate
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.probing.trials.os.ftruncate", lambda fd, size: size and truncate(fd, size)
    )
    assert measure(tmp_path).trial(Capability.TRUNCATE_CLEARS).detail == "old bytes come back"


def test_names_that_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def fold(path: str, *args: int) -> int:
        head, _, name = path.rpartition("/")
        return opened(f"{head}/{name.lower()}", *args)

    monkeypatch.setattr("sluice_s3.storage_drivers.probing.scratch.os.open", fold)
    found = measure(tmp_path)
    assert found.trial(Capability.CASE).works is False
    assert found.can(Capability.UNICODE)


@pytest.mark.parametrize(
    ("ability", "outcome", "kind", "relaxed_too"),
    [
        (Capability.EXCLUSIVE_CREATE, (False, "a second one succeeded"), "exclusive-create", True),
        (Capability.EXCLUSIVE_CREATE, errno.EIO, "error", True),
        (Capability.READ_BACK, (False, "other bytes"), "integrity", True),
        (Capability.SIZE_AFTER_CLOSE, (False, "3 bytes"), "integrity", True),
        (Capability.FSYNC_FILE, errno.EIO, "durability", False),
        (Capability.FSYNC_FILE, errno.EINVAL, "durability", False),
        (Capability.FSYNC_DIRECTORY, errno.EIO, "durability", False),
        (Capability.FSYNC_REACHES, (False, "Linux answers"), "durability", False),
    ],
)
async def test_a_store_that_refuses_to_start(
    make_driver: MakeDriver,
    monkeypatch: pytest.MonkeyPatch,
    ability: Capability,
    outcome: int | tuple[bool, str],
    kind: str,
    relaxed_too: bool,
) -> None:
    stand_in = failing(outcome) if isinstance(outcome, int) else lambda _: outcome
    monkeypatch.setitem(probe_trials.CHECKS, ability, stand_in)
    with pytest.raises(StoreUnfit, match=ability.value) as caught:
        await make_driver()
    assert caught.value.kind == kind
    if relaxed_too:
        with pytest.raises(StoreUnfit):
            await make_driver(durability=Durability.RELAXED)
    else:
        await make_driver(durability=Durability.RELAXED)


@pytest.mark.parametrize(
    ("kind", "sync", "call", "reaches"),
    [
        ("fuse.sshfs", 0.5e-6, 80e-6, False),
        ("fuse", 0.5e-6, 12e-6, False),
        ("fuse.rclone", 12e-6, 17e-6, True),  # its process answers, whatever it does
        ("fuseblk", 5e-6, 8e-6, True),
        ("fuse.far", 20e-6, 50e-3, True),  # a process here that answers for a server that is far away
        ("ext4", 0.5e-6, 12e-6, True),  # there is no process to reach
    ],
)
def test_a_sync_that_linux_answers_for_the_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, sync: float, call: float, reaches: bool
) -> None:
    """fsync of a directory succeeds on most FUSE mounts, and nobody syncs anything (ENOSYS, once)."""
    clock = itertools.accumulate(itertools.cycle((0.0, sync, call)))
    monkeypatch.setattr(sync_trials, "mount_of", lambda _: mountinfo.Mount(kind, "", "", ""))
    monkeypatch.setattr(sync_trials.time, "perf_counter", lambda: next(clock))
    scratch = Scratch(str(tmp_path))
    assert sync_trials.fsync_directory_reaches(scratch)[0] is reaches
    monkeypatch.undo()
    scratch.clear()


def test_a_directory_sync_that_is_not_passed_on_is_said_and_not_refused(tmp_path: Path) -> None:
    found = measure(tmp_path)
    unsynced = probe.Check(Capability.FSYNC_DIRECTORY_REACHES, False, "Linux answers")
    trials = tuple(one for one in found.trials if one.ability is not unsynced.ability)
    changed = dataclasses.replace(found, trials=(*trials, unsynced))
    assert Capability.FSYNC_DIRECTORY_REACHES.value in changed.line
    assert refusal_reason(changed, Durability.FULL) is None


def test_a_slow_mount_is_not_asked_ten_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    clock = itertools.accumulate(itertools.cycle((0.0, 0.5, 0.1)))
    monkeypatch.setattr(sync_trials, "mount_of", lambda _: mountinfo.Mount("fuse.s3fs", "", "", ""))
    monkeypatch.setattr(sync_trials.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(sync_trials.os, "fsync", synced.append)
    scratch = Scratch(str(tmp_path))
    assert sync_trials.fsync_directory_reaches(scratch)[0]
    monkeypatch.undo()
    scratch.clear()
    assert len(synced) == sync_trials.ENOUGH_SYNCS


def test_a_mount_that_is_known_not_to_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "mount_of", lambda _: mountinfo.Mount("fuse.rclone", "", str(tmp_path), ""))
    found = measure(tmp_path)
    refused = refusal_reason(found, Durability.FULL)
    assert refused is not None
    assert (refused.kind, "rclone" in str(refused)) == ("durability", True)
    assert refusal_reason(found, Durability.RELAXED) is None


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ('{"Chunk": {"Writeback": true}}', True),
        ('{"Chunk": {"Writeback": false}}', False),
        ('{"Chunk": []}', False),
        ("no JSON", False),
        (None, False),
    ],
)
def test_juicefs_is_believed_unless_it_says_that_it_writes_back(
    tmp_path: Path, config: str | None, refused: bool
) -> None:
    if config is not None:
        (tmp_path / ".config").write_text(config)
    assert bool(sync_refusal(mountinfo.Mount("fuse.juicefs", "", str(tmp_path), ""))) is refused
    assert not sync_refusal(mountinfo.Mount("fuse.other", "", str(tmp_path), ""))


async def test_a_mount_without_mkdir(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """As squashfuse: it answers ENOSYS, not EROFS."""
    monkeypatch.setattr("sluice_s3.storage_drivers.objects.initialize.os.mkdir", failing(errno.ENOSYS))
    with pytest.raises(StoreUnfit, match=r"mkdir: .*only for reading") as caught:
        await make_driver()
    assert caught.value.kind == "error"


async def test_a_store_whose_directories_are_gone_says_which(make_driver: MakeDriver, root: Path) -> None:
    driver = await make_driver()
    await driver.close()
    for path in (root / "data").iterdir():
        path.rmdir()
    (root / "data").rmdir()
    with pytest.raises(StoreFailed, match="keeps no empty directories"):
        await make_driver()


async def test_a_mount_without_sync_of_directories(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def files_only(fd: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{fd}"):
            raise OSError(errno.EINVAL, "injected")
        fsync(fd)

    monkeypatch.setattr("sluice_s3.storage_drivers.fsutil.os.fsync", files_only)
    driver = await make_driver()
    assert driver.probe is not None
    assert driver.probe.trial(Capability.FSYNC_DIRECTORY).error == errno.EINVAL
    locator = await driver.put(1, Pieces(b"x"))
    assert await content(driver, locator, 0, 1) == b"x"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
async def test_a_full_or_read_only_mount_starts(
    make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    await (await make_driver()).close()
    monkeypatch.setattr("sluice_s3.storage_drivers.probing.scratch.Scratch.create", failing(code))
    driver = await make_driver()
    assert driver.probe is not None
    assert driver.probe.trial(Capability.READ_BACK).works is None
    assert driver.capabilities.nowait, "nothing was seen that speaks against it"


async def test_a_hung_mount_is_told(make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(
        "sluice_s3.storage_drivers.objects.driver.run_with_timeout", lambda *args: run_with_timeout(*args, timeout=0.3)
    )
    monkeypatch.setitem(probe_trials.CHECKS, Capability.FSYNC_FILE, lambda _: go_on.wait(30))
    with pytest.raises(StoreUnfit, match="fsync of a file") as caught:
        await make_driver()
    assert caught.value.kind == "no-answer"
    go_on.set()


async def test_patience_counts_anew_with_every_step() -> None:
    progress = Progress()

    def steps() -> str:
        for number in range(5):
            progress.step(str(number))
            threading.Event().wait(0.1)
        return "done"

    assert await run_with_timeout(progress, steps, 0.4) == "done"


def test_a_start_leaves_nothing_and_takes_away_what_is_old(tmp_path: Path) -> None:
    directory = tmp_path / probe.DIRECTORY
    directory.mkdir()
    (directory / "left").write_text("of a process that died")
    (directory / "fresh").write_text("of a process that lives")
    os.utime(directory / "left", (1, 1))
    found = measure_store(tmp_path, Progress())
    assert [trial.ability for trial in found.trials] == list(AT_START)
    assert [path.name for path in directory.iterdir()] == ["fresh"]


async def test_many_start_at_once(make_driver: MakeDriver) -> None:
    await make_driver()
    drivers = await asyncio.gather(*(make_driver() for _ in range(8)))
    assert all(driver.probe is not None and driver.probe.can(Capability.READ_BACK) for driver in drivers)


def test_the_mount_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "table"
    escaped = str(tmp_path).replace(" ", "\\040")
    table.write_text(
        f"1 0 {number} / / rw - ext4 /dev/root rw\n"
        f"2 1 {number} / {escaped} rw,noatime shared:1 - nfs4 server:/a\\040b rw,vers=4.1\n"
        f"3 1 {number} / {escaped}xyz rw - xfs /dev/other rw\n"
        f"4 1 0:99 / {escaped} rw - proc proc rw\n"
    )
    monkeypatch.setattr(mountinfo, "TABLE", table)
    found = mountinfo.mount_of(tmp_path)
    assert found == mountinfo.Mount("nfs4", "server:/a b", str(tmp_path), "rw,noatime", "rw,vers=4.1")
    assert found.driver == "efs"


@pytest.mark.parametrize(
    ("kind", "driver"),
    [
        ("xfs", "local"),
        ("fuse.sshfs", "fuse"),
        ("fuseblk", "fuse"),
        ("lustre", "fuse"),
        ("ceph", "fuse"),
        ("nfs", "efs"),
    ],
)
def test_the_driver_for_a_kind_of_mount(kind: str, driver: str) -> None:
    assert mountinfo.Mount(kind, "", "", "").driver == driver


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        ("nfs4", "rw,vers=4.2,hard,local_lock=none", []),
        ("nfs4", "rw,vers=4.2,soft,local_lock=none", ["soft"]),
        ("nfs4", "rw,softerr,nocto,local_lock=none", ["softerr", "nocto"]),
        ("nfs", "rw,vers=3,hard,nolock,local_lock=all", ["nolock"]),
        ("nfs4", "rw,hard,nosharecache", ["nosharecache"]),
        ("nfs4", "rw,hard,local_lock=flock", ["local_lock=flock"]),
        ("nfs4", "rw,hard,local_lock=posix", []),
        ("fuse.sshfs", "rw,soft", []),
    ],
)
def test_options_of_a_mount_that_cost_something(kind: str, settings: str, named: list[str]) -> None:
    mount = mountinfo.Mount(kind, "server:/a", "/mnt", "rw", settings)
    found = probe.Probe(mount, (), (), 0, 0.0)
    assert [warning.partition(":")[0] for warning in found.warnings] == named
    assert all(warning in found.line for warning in found.warnings)
    assert found.to_json()["warnings"] == found.warnings


@pytest.mark.parametrize(("kind", "named"), [("ext4", ""), ("nfs4", "efs"), ("fuse.sshfs", "fuse")])
async def test_a_driver_that_is_not_for_the_mount(
    root: Path, make_driver: MakeDriver, monkeypatch: pytest.MonkeyPatch, kind: str, named: str
) -> None:
    monkeypatch.setattr(probe, "mount_of", lambda _: mountinfo.Mount(kind, "", "/", "rw"))
    driver = await make_driver()
    assert driver.probe is not None
    patient = driver.mount_profile.retry_seconds > 0
    wanted = "" if patient or not named else f"set the driver {named}"
    assert driver.probe.misfit.endswith(wanted)
    assert bool(driver.probe.misfit) == bool(wanted)
    assert driver.probe.misfit in driver.probe.line
