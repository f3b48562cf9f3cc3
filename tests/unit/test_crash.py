"""The points at which tests end a process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

import sluice_s3.app.crash


class Ended(Exception):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def end(monkeypatch: pytest.MonkeyPatch) -> None:
    def exit_now(code: int) -> None:
        raise Ended(code)

    monkeypatch.setattr("sluice_s3.app.crash.os._exit", exit_now)


def arm(monkeypatch: pytest.MonkeyPatch, *, at: str = "", nth: int = 1, file: str = "") -> None:
    for name, value in {"_AT": at, "_left": nth, "_FILE": file, "_ARMED": bool(at or file)}.items():
        monkeypatch.setattr(sluice_s3.app.crash, name, value)


def test_nothing_happens_unarmed() -> None:
    sluice_s3.app.crash.crash_point("put.synced")


def test_at_the_nth_time(monkeypatch: pytest.MonkeyPatch) -> None:
    arm(monkeypatch, at="put.synced", nth=2)
    sluice_s3.app.crash.crash_point("put.synced")
    sluice_s3.app.crash.crash_point("put.closed")
    with pytest.raises(Ended, match="137"):
        sluice_s3.app.crash.crash_point("put.synced")


class Job(NamedTuple):
    arguments: tuple[object, ...]


def test_while_a_file_says_so_of_a_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    armed.write_text("index.commit\n'mine'")
    arm(monkeypatch, file=str(armed))
    sluice_s3.app.crash.crash_point("index.commit")
    sluice_s3.app.crash.crash_point("index.commit", [Job((7, "another")), Job(())])
    sluice_s3.app.crash.crash_point("index.committed", [Job(("mine",))])
    with pytest.raises(Ended, match="137"):
        sluice_s3.app.crash.crash_point("index.commit", [Job((7, "another")), Job((8, "mine"))])


def test_while_a_file_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    armed = tmp_path / "armed"
    arm(monkeypatch, file=str(armed))
    sluice_s3.app.crash.crash_point("put.synced")
    armed.write_text("put.synced")
    sluice_s3.app.crash.crash_point("put.closed")
    with pytest.raises(Ended, match="137"):
        sluice_s3.app.crash.crash_point("put.synced")
