"""What is said before a run: who else uses the machine, its battery, clock, memory and disks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare import cold, devices, machine, preview
from sluice_s3.loadtests.compare.plan import Plan, select_scenarios
from sluice_s3.loadtests.compare.preview import Place


def test_who_takes_the_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        own, named = machine.others()
        monkeypatch.setattr(machine.procfs, "tree", lambda _: [])  # then it is somebody else's
        total, named = machine.others()
    finally:
        busy.kill()
        busy.wait()
    assert own >= 0
    assert total > 0
    assert all(name and cores >= machine.NAMED_CORES for name, cores in named)
    assert len(named) <= machine.NAMED


@pytest.mark.parametrize(
    ("load", "total", "said"),
    [
        (0.4, 0.1, ""),
        (9.04, 0.1, "the machine is busy: its load is 9.0, with 4 cores; others take 0.1 of them: warp (97%)"),
        (0.4, 1.5, "the machine is busy: its load is 0.4, with 4 cores; others take 1.5 of them: warp (97%)"),
    ],
)
def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, load: float, total: float, said: str) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(machine, "others", lambda: (total, [("warp", 0.97)]))
    assert machine.busy_warning() == said


def test_a_battery_that_is_low(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "POWER", tmp_path)
    assert machine.battery_warning() == ""
    for name, kind, status, capacity in (("AC", "Mains", "", ""), ("BAT0", "Battery", "Discharging", "17")):
        (tmp_path / name).mkdir()
        for file, text in (("type", kind), ("status", status), ("capacity", capacity)):
            (tmp_path / name / file).write_text(f"{text}\n")
    assert machine.battery_warning().startswith("the battery is low (17 %)")
    (tmp_path / "BAT0/status").write_text("Charging\n")
    assert machine.battery_warning() == ""


def test_an_unsteady_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CLOCK", tmp_path / "clock")
    monkeypatch.setattr(machine, "is_synchronised", lambda: True)
    assert machine.clock_warnings() == []
    (tmp_path / "clock").write_text("tsc\n")
    assert machine.clock_warnings() == []
    (tmp_path / "clock").write_text("hpet\n")
    monkeypatch.setattr(machine, "is_synchronised", lambda: False)
    slow, adrift = machine.clock_warnings()
    assert "from hpet" in slow
    assert "not synchronised" in adrift


def test_a_clock_that_is_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = [100.0]
    monkeypatch.setattr(machine, "_offset", lambda: offset[0])
    watch = machine.ClockWatch()
    for now in (100.001, 100.002, 101.5, 101.501, 101.4):
        offset[0] = now
        watch.look()
    assert watch.steps == [1.498, -0.101]


def test_the_kernel_is_asked_about_the_clock_and_nothing_is_set() -> None:
    assert machine.is_synchronised() in (True, False)
    watch = machine.ClockWatch()
    watch.look()
    assert watch.steps == []


def test_partitions_volumes_and_loop_devices_are_parts_of_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    block, tree = tmp_path / "block", tmp_path / "tree"
    for name in ("sda/sda1", "sda/sda2", "sdb", "dm-0/slaves", "loop0/loop"):
        (tree / name).mkdir(parents=True)
    for part in ("sda1", "sda2"):
        (tree / "sda" / part / "partition").write_text("1")
    (tree / "dm-0/slaves/sda2").symlink_to(tree / "sda/sda2")
    (tree / "dm-0/slaves/sdb").symlink_to(tree / "sdb")
    (tree / "loop0/loop/backing_file").write_text("/images/one\n")
    block.mkdir()
    numbers = {"8:1": "sda/sda1", "8:2": "sda/sda2", "8:16": "sdb", "253:0": "dm-0", "7:0": "loop0"}
    for number, name in numbers.items():
        (block / number).symlink_to(tree / name)
    monkeypatch.setattr(devices, "BLOCK", block)
    monkeypatch.setattr(devices, "device_of", lambda path: os.makedev(8, 16) if path == Path("/images/one") else 0)
    found = {number: devices.disks_of(os.makedev(*map(int, number.split(":")))) for number in numbers}
    assert found == {
        "8:1": {"sda"}, "8:2": {"sda"}, "8:16": {"sdb"}, "253:0": {"sda", "sdb"}, "7:0": {"sdb"},
    }  # fmt: skip
    assert devices.disks_of(0) == frozenset()
    assert devices.disks_of(os.makedev(9, 9)) == frozenset()


def test_two_paths_on_one_device_or_disk() -> None:
    places = [
        Place("a", "gateway", device=1, disks=["sda"]),
        Place("b", "gateway", device=1, disks=["sda"]),
        Place("c", "gateway", device=2, disks=["sda"]),
        Place("d", "gateway", device=3, disks=["sdb"]),
        Place("e", "gateway"),
        Place("f", "endpoint"),
    ]
    assert preview._shared_disks(places) == ["a and b lie on one device", "a and b and c lie on one disk (sda)"]
    assert preview._shared_disks(places[3:]) == []


def test_what_the_page_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(3, select_scenarios(["sizes"]), stores=("local",))
    monkeypatch.setattr(machine, "cache_bytes", lambda: 10**12)
    (said,) = preview._cached(plan)
    assert said.startswith("the page cache (1,000.0 GB) holds all that a scenario writes (0.3 GB at most)")
    monkeypatch.setattr(machine, "cache_bytes", lambda: 1000)
    assert preview._cached(plan) == []
    for dropped, how in ((True, "drop_caches"), (False, "posix_fadvise")):
        monkeypatch.setattr(cold, "can_drop", lambda dropped=dropped: dropped)
        assert how in preview._cached(Plan(3, plan.scenarios, stores=("local",), cold=True))[0]


def test_the_memory_for_files_is_known_here() -> None:
    assert machine.cache_bytes() > 0
