"""The history of stores, and its file."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.admin.store_health.transitions import FILE, MAX_TRANSITIONS, TransitionLog
from sluice_s3.app.private_files import make_directory


def shown(log: TransitionLog, store: str = "s") -> list[tuple[str, int, int, str]]:
    return [(one.condition, one.processes, one.of, one.reason) for one in log.of(store)]


def test_the_worst_condition_counts_and_a_reason_may_come_later(tmp_path: Path) -> None:
    log = TransitionLog(tmp_path)
    log.note("s", [], "", 1)
    log.note("s", ["up", "up", "up"], "", 2)
    log.note("s", ["up", "up", "up"], "leftover", 3)
    log.note("s", ["up", "down", "up"], "", 4)
    log.note("s", ["down", "down", "full"], "it does not answer", 5)
    log.note("s", ["up", "down", "up"], "", 6)
    log.note("s", ["up", "up", "up"], "leftover", 7)
    assert shown(log) == [("up", 3, 3, ""), ("down", 2, 3, "it does not answer"), ("up", 3, 3, "")]
    assert [one.at for one in log.of("s")] == [2, 4, 7]
    assert log.of("another") == []


async def test_the_history_outlives_the_process_and_is_bounded(tmp_path: Path) -> None:
    make_directory(tmp_path / "run")
    log = TransitionLog(tmp_path / "run")
    log.load()
    for number in range(3 * MAX_TRANSITIONS):
        log.note("s", ["down" if number % 2 else "up"], "gone", number)
    await log.save()
    later = TransitionLog(tmp_path / "run")
    later.load()
    assert shown(later) == shown(log)
    assert len(later.of("s")) == MAX_TRANSITIONS
    written = (tmp_path / "run" / FILE).stat().st_mtime_ns
    await later.save()
    assert (tmp_path / "run" / FILE).stat().st_mtime_ns == written, "nothing has changed"


async def test_a_broken_history_is_begun_anew(tmp_path: Path) -> None:
    make_directory(tmp_path / "run")
    for content in (b"", b"[]", b'{"s": [{"x": 1}]}', b'{"s": 3}', b"\xff"):
        (tmp_path / "run" / FILE).write_bytes(content)
        log = TransitionLog(tmp_path / "run")
        log.load()
        log.note("s", ["up"], "", 1)
        assert len(log.of("s")) == 1
        await log.save()
