"""A start waits for Postgres only while time may help, and says so in one line."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from sluice_s3.app.index.postgres.wait import wait_for_postgres
from tests.support.gateway import Gateway
from tests.support.postgres import server


async def test_it_goes_on_when_postgres_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = server().empty()
    real = Path(url.partition("?host=")[2])
    late = tmp_path / "late"
    with caplog.at_level(logging.INFO, "sluice.index"):
        waiting = asyncio.create_task(wait_for_postgres(url.replace(str(real), str(late)), 60))
        while not caplog.messages:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.01)
        late.symlink_to(real)
        assert await waiting is None
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith("waiting up to 60 s for Postgres")


async def test_what_time_does_not_change_is_left_to_the_start() -> None:
    url = server().empty()
    assert await wait_for_postgres(url.replace("//sluice@", "//nobody-here@"), 60) is None


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid"])
async def test_it_gives_up_without_the_password(host: str) -> None:
    reason = await wait_for_postgres(f"postgresql://me:s3cret@{host}/db", 0.01)
    assert reason is not None
    assert reason.startswith(f"Postgres at {host} did not answer for 0.01 s: ")
    assert "s3cret" not in reason


def test_the_exit_code_is_its_own(tmp_path: Path) -> None:
    options = ("--index", "postgresql://me:s3cret@127.0.0.1:1/db", "--wait-index", "0.1", "--port", "0")
    ended = Gateway(tmp_path / "data").run("serve", "--data", str(tmp_path / "data"), *options, check=False)
    assert ended.returncode == 5
    assert "s3cret" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("sluice: the index cannot be used: Postgres at 127.0.0.1:1")
