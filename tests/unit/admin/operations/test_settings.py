"""Settings and gateways in the admin API."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.admin.operations.gateways import HeartbeatWatch
from sluice_s3.app.index.cluster.gateways import NotedWriter
from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.settings import Settings
from sluice_s3.app.settings.origins import MASK, show_settings
from tests.unit.admin.console_client import Console


def test_each_setting_says_what_gave_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sluice.toml"
    store = '[stores.a]\nurl = "s3://user:password@host/x?key=secret"\noptions = {secret = "s"}\n'
    file.write_text(f'region = "eu-west-1"\n{store}')
    file.chmod(0o600)
    environment = {"SLUICE_INDEX": "sqlite:////x/index.db", "MINIO_ROOT_PASSWORD": "well-hidden", "SLUICE_PORT": "1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLUICE_MASTER_KEY_COMMAND", "print secret")
    given = Settings(config=file, port=9)  # type: ignore[call-arg]
    given.note_options({"config", "port"})
    shown = {one.name: one for one in show_settings(given, {**environment, "SLUICE_MASTER_KEY_COMMAND": "x"})}
    assert (shown["port"].value, shown["port"].origin, shown["port"].given_by) == (9, "option", "--port")
    assert (shown["region"].origin, shown["region"].given_by) == ("file", str(file))
    assert (shown["root_secret_key"].origin, shown["root_secret_key"].value) == ("minio", MASK)
    assert shown["root_secret_key"].given_by == "MINIO_ROOT_PASSWORD"
    assert (shown["index"].origin, shown["index"].value) == ("environment", MASK)
    assert (shown["host"].origin, shown["host"].value, shown["host"].default) == ("default", "127.0.0.1", "127.0.0.1")
    assert shown["master_key_command"].value == MASK
    for secret in ("password", "key=secret", '"s"', "well-hidden", "print secret"):
        assert secret not in repr([one.value for one in shown.values()])


def test_settings_of_a_launcher_that_knew_no_options_can_be_shown() -> None:
    state = {**Settings().__getstate__(), "__pydantic_private__": None}
    given = Settings.__new__(Settings)
    given.__setstate__(state)
    assert given.options == frozenset()


def writer(incarnation: int, number: int) -> NotedWriter:
    return NotedWriter(Beat(incarnation, "live", number, 0), "")


def test_a_heartbeat_is_as_old_as_its_last_change_that_was_seen() -> None:
    now = 100.0
    watch = HeartbeatWatch(lambda: now)
    assert watch.look([writer(1, 5)]) == {1: (0.0, False)}
    now += 2
    assert watch.look([writer(1, 6), writer(2, 9)]) == {1: (0.0, True), 2: (0.0, False)}
    now += 30
    assert watch.look([writer(1, 6)]) == {1: (30.0, True)}


@pytest.mark.slow
async def test_the_routes(site: Console) -> None:
    ann = await site.sign_in(*await site.user("ann"))
    root = await site.sign_in()
    for path in ("settings", "gateways"):
        assert (await ann.get(f"/api/v1/{path}")).status_code == 403
    shown = (await root.get("/api/v1/settings")).json()
    assert {one["name"] for one in shown} == set(Settings.model_fields)
    (own,) = (await root.get("/api/v1/gateways")).json()
    assert (own["this"], own["urls"]) == (True, {"s3": "http://127.0.0.1:9000"})
