"""The admin API and metrics."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice_s3.app.admin.app import create_application
from sluice_s3.app.admin.bodies import MAX_BODY
from sluice_s3.app.admin.operations.request_watch import Tail
from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow

JSON = {"content-type": "application/json"}


class SilentTail:
    """A tail of requests: what tests put into `requests`."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.lost = 0
        self.wanted = False

    def want(self) -> None:
        """Somebody watches."""
        self.wanted = True

    def stop(self) -> None:
        """Nobody does any more."""
        self.wanted = False

    def read(self) -> tuple[list[dict[str, Any]], int]:
        """Return what tests put there."""
        found, lost = (self.requests, self.lost)
        self.requests, self.lost = [], 0
        return found, lost


class Alone:
    """A server of this process only, which counted `metrics`."""

    def __init__(self, metrics: bytes) -> None:
        self._metrics = metrics
        self.counters = self
        self.read_caches: dict[str, int] = {}

    def render(self) -> bytes:
        """What was counted."""
        return self._metrics

    bounds = (0.001, 1.0)

    def read_operations(self) -> dict[str, Any]:
        """Nothing was asked for."""
        return {}

    def read_gauges(self) -> tuple[float, float]:
        """Nothing runs."""
        return 0, 0

    def read_deaths(self) -> list[Any]:
        """Nothing died."""
        return []

    def addresses(self) -> dict[str, str]:
        """S3 would be there."""
        return {"s3": "http://127.0.0.1:9000"}

    def open_tail(self) -> Tail:
        """A tail that nobody writes."""
        return SilentTail()

    def render_processes(self) -> bytes:
        """There is none but this one."""
        return b""

    def publish_store_state(self, name: str, condition: str, running: int, stuck: int, held: int) -> None:
        """Nobody else wants to know."""

    def read_buckets(self) -> None:
        """Buckets are not counted."""

    def states_of(self, name: str) -> list[tuple[str, int, int]]:
        """None is known."""
        return []


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@asynccontextmanager
async def running(settings: Settings, metrics: bytes = b"") -> AsyncIterator[httpx.AsyncClient]:
    """A client of an admin application that runs in this process."""
    app = create_application(settings, Alone(metrics))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://admin") as client,
    ):
        yield client


@pytest.fixture
async def admin(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async with running(settings, b"sluice_up 1\n") as client:
        client.headers["authorization"] = f"Bearer {(settings.data / 'admin-token').read_text().strip()}"
        yield client


async def test_metrics_need_no_token_and_all_else_does(admin: httpx.AsyncClient) -> None:
    token = admin.headers.pop("authorization")
    metrics = (await admin.get("/metrics")).text
    assert metrics.startswith("sluice_up 1\n")
    assert '\nsluice_undecided_seconds{store="default"} ' in metrics
    assert '\nsluice_undecided_changes{store="default"} ' in metrics
    for state in ("live", "dead"):
        assert f'\nsluice_pack_bytes{{store="default",state="{state}"}} 0\n' in metrics
    assert '\nsluice_discarded_blobs{store="default"} 0\n' in metrics
    assert '\nsluice_discarded_seconds{store="default"} 0\n' in metrics
    assert '\nsluice_packs{store="default"} 0\n' in metrics
    assert '\nsluice_store_up{store="default"} 1\n' in metrics
    assert float(re.findall(r'\nsluice_store_free_bytes{store="default"} (\S+)', metrics)[0]) > 0
    for path in ("/api/v1/accounts", "/api/v1/stores", "/docs", "/openapi.json"):
        for wrong in ("", "Bearer x", "Basic nonsense", "Basic " + base64.b64encode(b"a:b").decode()):
            assert (await admin.get(path, headers={"authorization": wrong})).status_code == 401
        basic = base64.b64encode(b"me:" + token.removeprefix("Bearer ").encode()).decode()
        assert (await admin.get(path, headers={"authorization": f"Basic {basic}"})).status_code == 200


async def test_a_token_that_is_no_text_is_a_wrong_one(admin: httpx.AsyncClient) -> None:
    for wrong in (b"Basic \xff\xe9", b"Bearer \xff\xe9", b"Basic " + base64.b64encode(b"\xff:\xff")):
        assert (await admin.get("/api/v1/stores", headers=[(b"authorization", wrong)])).status_code == 401


async def test_no_more_is_read_than_can_be_meant(admin: httpx.AsyncClient) -> None:
    """Nothing without the token."""
    given = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal given
        while given < 100 * MAX_BODY:
            given += 65536
            yield b" " * 65536

    for headers, status, most in (({"authorization": "Bearer wrong"}, 401, 0), ({}, 413, MAX_BODY + 65536)):
        given = 0
        answer = await admin.post("/api/v1/accounts", content=endless(), headers={**JSON, **headers})
        assert answer.status_code == status
        assert given <= most
    told = {**JSON, "content-length": str(MAX_BODY + 1)}
    assert (await admin.post("/api/v1/accounts", content=endless(), headers=told)).status_code == 413
    body = b" " * (MAX_BODY - 2) + b"{}"
    assert (await admin.post("/api/v1/accounts", content=body, headers=JSON)).status_code == 201


async def test_life_of_an_account(admin: httpx.AsyncClient) -> None:
    made = await admin.post("/api/v1/accounts", json={"display_name": "one", "email": "one@example.org"})
    assert made.status_code == 201
    account = made.json()
    assert len(account["secret_key"]) >= 40
    again = await admin.post("/api/v1/accounts", json={"id": "two", "access_key": account["access_key"]})
    assert again.status_code == 409
    listed = {entry["id"]: entry for entry in (await admin.get("/api/v1/accounts")).json()}
    assert listed[account["id"]]["access_keys"] == [account["access_key"]]
    assert account["secret_key"] not in (await admin.get("/api/v1/accounts")).text
    assert (await admin.patch(f"/api/v1/accounts/{account['id']}", json={"disabled": True})).status_code == 204
    listed = {entry["id"]: entry for entry in (await admin.get("/api/v1/accounts")).json()}
    assert listed[account["id"]]["disabled"] is True
    assert (await admin.get(f"/api/v1/accounts/{account['id']}/buckets")).json() == []
    assert (await admin.delete(f"/api/v1/accounts/{account['id']}")).status_code == 204
    assert (await admin.delete(f"/api/v1/accounts/{account['id']}")).status_code == 404
    assert (await admin.patch("/api/v1/accounts/none", json={"disabled": True})).status_code == 404
    for name, value in (("access_key", "x"), ("secret_key", "short"), ("id", "a/b"), ("display_name", "\x01")):
        answer = await admin.post("/api/v1/accounts", json={name: value})
        assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["body", name])


async def test_store(admin: httpx.AsyncClient, settings: Settings) -> None:
    (told,) = (await admin.get("/api/v1/stores")).json()
    alone = (await admin.get("/api/v1/stores/default")).json()
    assert {**alone, "free": 0, "free_inodes": 0} == {**told, "free": 0, "free_inodes": 0}
    assert (await admin.get("/api/v1/stores/none")).status_code == 404
    assert (told["name"], told["default"], told["state"], told["driver"]) == ("default", True, "up", "local")
    assert told["durability"] == "relaxed"
    assert told["etag"] == "md5"
    assert 0 < told["free"] <= told["total"]
    assert str(settings.data) not in str(told)


async def test_a_given_token_is_not_written(settings: Settings) -> None:
    given = Settings(**{**settings.model_dump(), "admin_token": "given-token"})
    async with running(given) as client:
        assert (await client.get("/api/v1/stores", headers={"authorization": "Bearer given-token"})).status_code == 200
    assert not (settings.data / "admin-token").exists()


def test_no_token_is_no_token(settings: Settings) -> None:
    """Else a request without one would match it."""
    for token in ("", "short"):
        with pytest.raises(ValueError, match="admin_token"):
            Settings(**{**settings.model_dump(), "admin_token": token})
    (settings.data / "admin-token").touch(mode=0o600)
    (settings.data / "admin-token").write_text("\n")
    with pytest.raises(OSError, match="no token in this file"):
        create_application(settings, Alone(b""))


@pytest.mark.parametrize("value", [rb'"\ud800"', b"NaN", b"1e400", b"[" * 100_000])
async def test_what_no_json_is_refused(admin: httpx.AsyncClient, value: bytes) -> None:
    for name in (b"display_name", b"id", b"email"):
        answer = await admin.post("/api/v1/accounts", content=b'{"%s":%s}' % (name, value), headers=JSON)
        assert answer.status_code == 422
    answer = await admin.put("/api/v1/buckets/none/quota", content=b'{"bytes":%s}' % value, headers=JSON)
    assert answer.status_code == 422
    account = (await admin.post("/api/v1/accounts", json={})).json()["id"]
    body = b'{"parameters":{"UserName":"ann","Path":%s}}' % value
    answer = await admin.post(f"/api/v1/accounts/{account}/iam/CreateUser", content=body, headers=JSON)
    assert answer.status_code == 422


@pytest.mark.parametrize("number", [2**64, 10**30])
async def test_a_quota_that_cannot_be_kept_is_refused(admin: httpx.AsyncClient, number: int) -> None:
    for name in ("bytes", "objects"):
        answer = await admin.put("/api/v1/buckets/none/quota", json={name: number})
        assert answer.status_code == 422
    assert (await admin.put("/api/v1/buckets/none/quota", json={"bytes": 2**64 - 1})).status_code == 404


async def test_fields_that_are_not_known_are_refused(admin: httpx.AsyncClient) -> None:
    account = (await admin.post("/api/v1/accounts", json={"id": "a"})).json()["id"]
    sent = [
        await admin.post("/api/v1/accounts", json={"id": "b", "name": "Bea"}),
        await admin.patch(f"/api/v1/accounts/{account}", json={"disabled": True, "email": "a@b.test"}),
        await admin.put("/api/v1/buckets/none/quota", json={"byts": 3}),
        await admin.post(f"/api/v1/accounts/{account}/iam/ListUsers", json={"params": {}}),
    ]
    assert [answer.status_code for answer in sent] == [422] * 4
    left = {one["id"]: one["disabled"] for one in (await admin.get("/api/v1/accounts")).json()}
    assert left["a"] is False
    assert "b" not in left
