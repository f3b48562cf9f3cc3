"""While a backup holds removals, nothing that is discarded then is removed: on both engines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_s3.app.errors import Overloaded, StoreUnavailable
from sluice_s3.app.index import open_index
from sluice_s3.app.index.postgres.removal_hold import FIRST
from sluice_s3.app.index.tools.hold import hold_removals
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from tests.support import postgres
from tests.support.environment import PYTHONPATH
from tests.support.settings import make_settings
from tests.unit.jobs.packed import collect
from tests.unit.store.site import opened, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


async def test_removals_wait_until_the_backup_ends_or_dies(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.index.engine.removal_hold.TAKE_SECONDS", 0.1)
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "k", b"1")
        async with hold_removals(settings.run_dir, None):
            await put(store, bucket, "k", b"2")
            assert await collect(store) == 0
            with pytest.raises(Overloaded, match="another backup"):
                async with hold_removals(settings.run_dir, None):
                    pass
        assert await collect(store) == 1
        code = (
            "import sys, time; from pathlib import Path; from sluice_s3.app.index.engine.removal_hold import "
            "RemovalHold; hold = RemovalHold(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
        )
        child = subprocess.Popen(  # noqa: ASYNC220 - it only waits
            [sys.executable, "-c", code, str(settings.run_dir)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
        )
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"held\n"
            await put(store, bucket, "k", b"3")
            assert await collect(store) == 0
        finally:
            child.kill()
            child.communicate()
        assert await collect(store) == 1


@pytest.fixture
def url() -> str:
    return postgres.server().fresh()


async def test_a_hold_in_postgres_is_seen_by_all_hosts_and_ends_with_its_connection(url: str, tmp_path: Path) -> None:
    hosts = [make_settings(tmp_path, index=url, runtime_dir=tmp_path / f"run{number}") for number in range(2)]
    hosts[1] = hosts[1].model_copy(update={"index_pooler": True})
    indexes = [open_index(host) for host in hosts]
    try:
        await indexes[0].start(migrate=True)
        await indexes[1].start()
        assert [await index.removals_are_held() for index in indexes] == [False, False]
        async with hold_removals(hosts[0].run_dir, url) as check:
            await check()
            assert [await index.removals_are_held() for index in indexes] == [True, True]
            with pytest.raises(Overloaded, match="another backup"):
                async with hold_removals(hosts[1].run_dir, url):
                    pass
            holding = f"FROM pg_locks WHERE locktype = 'advisory' AND classid = {FIRST}"
            postgres.server().sql(f"SELECT pg_terminate_backend(pid, 5000) {holding}")
            assert [await index.removals_are_held() for index in indexes] == [False, False]
            with pytest.raises(StoreUnavailable):
                await check()
    finally:
        for index in indexes:
            await index.close()
