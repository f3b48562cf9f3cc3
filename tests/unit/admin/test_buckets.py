"""Buckets in the admin API: lists with contents and badges, quotas, choices, and what users may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from fastapi import FastAPI

from sluice_s3.app.access.account import caller_of
from sluice_s3.app.access.policy.identity_policies import parse_stored_policy
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.admin.app import create_application
from sluice_s3.app.admin.buckets import rights
from sluice_s3.app.admin.buckets.counts import BucketCounts
from sluice_s3.app.admin.sessions.guard import CALLER, Caller
from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.queries import Totals
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.index.notifications.rows import delivered_note, note_of
from sluice_s3.app.index.relocation.rows import progress_note
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from tests.support.settings import make_settings
from tests.unit.admin.test_admin import Alone
from tests.unit.jobs.two import stores
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow

EVERYBODY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}]}


class Console:
    """The admin application in this process, called by anybody."""

    def __init__(self, app: FastAPI, first: str) -> None:
        self.first = first
        self.caller: Caller | None = None

        async def signed_in(scope: Any, receive: Any, send: Any) -> None:
            if self.caller is not None:
                scope[CALLER] = self.caller
            await app(scope, receive, send)

        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(signed_in), base_url="http://admin")

    def become(self, *statements: dict[str, Any], account: str = "") -> None:
        """Call as an account from now on; with statements, as its user."""
        account = account or self.first
        principal = None
        if statements:
            text = orjson.dumps({"Version": "2012-10-17", "Statement": list(statements)}).decode()
            caller = caller_of(account)._replace(arn="arn:aws:iam::1:user/ann")
            principal = Principal(caller, (parse_stored_policy(text),), (), caller.arn, "AIDA", "ann", "User", None)
        root = principal is None and account == self.first
        self.caller = Caller(account, principal, root, "arn", "127.0.0.1", "KEY", self.first)


def allow(action: str | list[str], resource: str = "*") -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(
        tmp_path,
        stores={
            "fast": {"path": tmp_path / "fast"},
            "slow": {"path": tmp_path / "slow"},
            "files": {"path": tmp_path / "files", "layout": "tree"},
        },
        index=f"sqlite:///{tmp_path}/index/sluice.db",
        storage_classes="STANDARD_IA=slow",
        notify_targets={"hook": {"url": "http://127.0.0.1:1/"}, "other": {"url": "http://127.0.0.1:1/o"}},
    )
    prepare(made)
    return made


@pytest.fixture
async def console(settings: Settings) -> AsyncIterator[Console]:
    async with running(settings) as console:
        yield console


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Console]:
    app = create_application(settings, Alone(b""))
    async with app.router.lifespan_context(app):
        first = (await app.state.index.accounts())[0][0].id
        console = Console(app, first)
        console.become()
        async with console.client:
            yield console


async def make(settings: Settings, owner: str) -> None:
    """Three buckets: one with everything, one plain, one of somebody else."""
    async with stores(settings) as store:
        full = await store.index.create_bucket("full", owner, "us-east-1", 10, "fast", "", ENABLED)
        for name, value in (
            ("object_lock", []),
            ("encryption", ["AES256"]),
            ("quota", {"bytes": 100, "objects": None}),
            ("public_access_block", []),
            ("policy", orjson.dumps(_policy("full")).decode()),
        ):
            await store.index.configure_bucket(full.id, name, value)
        own = store.of("fast")
        for body in (b"12345", b"123"):
            await put(own, full, "k", body)
        await put(own, full, "gone", b"1")
        await objects.delete(own, full.id, "gone", None, None, {})
        await store.index.create_bucket("plain", owner, "us-east-1", 10, "fast")
        await store.index.add_account(Account("stranger", "", "", False, 0), "STRANGER", "secret-of-stranger")
        await store.index.create_bucket("theirs", "stranger", "us-east-1", 10, "fast")


def _policy(bucket: str) -> dict[str, Any]:
    return {**EVERYBODY, "Statement": [{**EVERYBODY["Statement"][0], "Resource": f"arn:aws:s3:::{bucket}/*"}]}


async def test_a_list_has_contents_and_badges(settings: Settings, console: Console) -> None:
    await make(settings, console.first)
    page = (await console.client.get("/api/v1/buckets")).json()
    full, plain = page["buckets"]
    assert (page["next"], page["counting"]) == (None, False)
    contents = full["contents"]
    assert contents.pop("counted") > 1_700_000_000_000
    assert contents == {
        "objects": 1,
        "bytes": 9,
        "older_versions": 2,
        "older_bytes": 6,
        "delete_markers": 1,
        "uploads": 0,
        "upload_bytes": 0,
    }
    badges = ("versioning", "object_lock", "public", "encryption", "store", "quota")
    assert [full[badge] for badge in badges] == [
        "enabled", True, True, "AES256", "fast", {"bytes": 100, "objects": None},
    ]  # fmt: skip
    assert [plain[badge] for badge in badges] == ["off", False, False, "", "fast", None]


async def test_pages(settings: Settings, console: Console) -> None:
    async with stores(settings) as store:
        for number in range(5):
            await store.index.create_bucket(f"b{number}", console.first, "us-east-1", 10, "fast")
    names, after = [], ""
    while after is not None:
        page = (await console.client.get("/api/v1/buckets", params={"limit": 2, "after": after})).json()
        names.append([one["name"] for one in page["buckets"]])
        after = page["next"]
    assert names == [["b0", "b1"], ["b2", "b3"], ["b4"]]
    found = (await console.client.get("/api/v1/buckets", params={"prefix": "b3"})).json()["buckets"]
    assert [one["name"] for one in found] == ["b3"]
    for wrong in ({"limit": 0}, {"limit": 1001}, {"prefix": "x" * 64}, {"after": "x" * 64}):
        assert (await console.client.get("/api/v1/buckets", params=wrong)).status_code == 422


async def test_a_user_sees_what_his_policies_allow(settings: Settings, console: Console) -> None:
    await make(settings, console.first)
    get = console.client.get
    console.become(allow("s3:GetObject"))
    assert (await get("/api/v1/buckets")).status_code == 403
    assert (await get("/api/v1/buckets/full")).status_code == 403
    console.become(allow("s3:ListAllMyBuckets"))
    for one in (await get("/api/v1/buckets")).json()["buckets"]:
        assert {key: value for key, value in one.items() if value is not None}.keys() == {"name", "region", "created"}
    console.become(
        allow(["s3:ListAllMyBuckets", "s3:GetBucketVersioning"]), allow("s3:ListBucket", "arn:aws:s3:::full")
    )
    full, plain = (await get("/api/v1/buckets")).json()["buckets"]
    assert (full["contents"]["objects"], full["quota"]["bytes"], full["versioning"]) == (1, 100, "enabled")
    assert (plain["contents"], plain["store"], plain["versioning"]) == (None, None, "off")
    assert (await get("/api/v1/buckets/full")).json()["may_set_quota"] is False
    assert (await get("/api/v1/buckets/plain")).status_code == 403
    assert (await get("/api/v1/buckets/plain/quota")).status_code == 403
    console.become(allow("sluice:ListBuckets"))
    seen = (await get("/api/v1/buckets/theirs")).json()
    assert (seen["store"], seen["contents"], seen["quota"]) == ("fast", None, None)
    console.become({**allow("s3:*"), "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}})
    assert (await get("/api/v1/buckets")).status_code == 403
    console.become({**allow("s3:*"), "Condition": {"IpAddress": {"aws:SourceIp": "127.0.0.1"}}})
    assert len((await get("/api/v1/buckets")).json()["buckets"]) == 2


async def test_decisions_about_a_page_are_bounded(
    settings: Settings, console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Policies that take long to decide are refused, and hold up nobody."""
    async with stores(settings) as store:
        for number in range(5):
            await store.index.create_bucket(f"b{number}", console.first, "us-east-1", 10, "fast")
    slow = [{**allow("s3:*", f"arn:aws:s3:::{'*b' * 20}{number}"), "Effect": "Deny"} for number in range(20)]
    console.become(allow("s3:*"), *slow)
    for most, versioning in ((rights.MOST_WORK, "off"), (1000, None)):
        monkeypatch.setattr(rights, "MOST_WORK", most)
        listed = (await console.client.get("/api/v1/buckets")).json()["buckets"]
        assert listed[-1]["versioning"] == versioning


async def test_others_see_their_own_alone(settings: Settings, console: Console) -> None:
    await make(settings, console.first)
    console.become(account="stranger")
    assert [one["name"] for one in (await console.client.get("/api/v1/buckets")).json()["buckets"]] == ["theirs"]
    assert (await console.client.get("/api/v1/buckets/full")).status_code == 403
    assert (await console.client.get("/api/v1/buckets/theirs")).json()["owned"] is True
    quota = "/api/v1/buckets/theirs/quota"
    assert (await console.client.put(quota, json={"bytes": 1})).status_code == 403
    assert (await console.client.get(quota)).json()["used_bytes"] == 0
    console.become()
    assert (await console.client.put(quota, json={"bytes": 5, "objects": 7})).status_code == 204
    seen = (await console.client.get("/api/v1/buckets/theirs")).json()
    assert (seen["quota"], seen["owned"]) == ({"bytes": 5, "objects": 7}, False)
    assert (await console.client.put("/api/v1/buckets/none/quota", json={})).status_code == 404
    assert (await console.client.get("/api/v1/buckets/none")).status_code == 404


async def test_what_a_bucket_can_have(settings: Settings, console: Console) -> None:
    async with stores(settings) as store:
        await store.index.create_bucket("plain", console.first, "us-east-1", 10, "files")
        settled = await store.index.create_bucket("site", console.first, "us-east-1", 10, "fast")
        await store.index.configure_bucket(settled.id, "website", [None, "index.html", "", []])
    found = (await console.client.get("/api/v1/buckets/plain")).json()
    assert (found["plain_files"], found["storage_classes"], found["archives"]) == (True, ["STANDARD_IA"], False)
    assert (found["encryption_available"], found["website"], found["may_move"]) == (False, None, True)
    assert (await console.client.get("/api/v1/buckets/site")).json()["plain_files"] is False
    choices = (await console.client.get("/api/v1/bucket-choices")).json()
    assert [(one["name"], one["default"], one["plain_files"]) for one in choices["stores"]] == [
        ("fast", True, False),
        ("slow", False, False),
        ("files", False, True),
    ]
    assert [one["name"] for one in choices["targets"]] == ["fast", "slow"]
    console.become(account="stranger")
    assert (await console.client.get("/api/v1/bucket-choices")).json()["targets"] == []


async def test_a_move_is_begun_watched_and_turned_back(settings: Settings, console: Console) -> None:
    await make(settings, console.first)
    client, move = console.client, "/api/v1/buckets/full/move"
    assert (await client.get(move)).json() == {
        "moving": False, "store": "fast", "source": None, "rows": 0, "total_rows": 0, "bytes": 0, "stuck": 0,
    }  # fmt: skip
    assert (await client.delete(move)).status_code == 409
    for store, status in (("none", 409), ("files", 409), ("fast", 409), ("x" * 65, 422)):
        assert (await client.post(move, json={"store": store})).status_code == status
    assert (await client.post("/api/v1/buckets/none/move", json={"store": "slow"})).status_code == 404
    console.become(allow("s3:*"))
    assert (await client.post(move, json={"store": "slow"})).status_code == 403
    console.become(allow(["sluice:MoveBucket", "s3:ListBucket"]))
    begun = await client.post(move, json={"store": "slow"})
    assert (begun.status_code, begun.json()["source"], begun.json()["store"]) == (202, "fast", "slow")
    async with stores(settings) as store:
        bucket = await store.index.bucket("full")
        assert bucket is not None
        noted = orjson.dumps({"rows": 3, "of": 7, "bytes": 9, "stuck": 1}).decode()
        await store.index.set_note(progress_note(bucket.id), noted)
    seen = (await client.get(move)).json()
    assert (seen["rows"], seen["total_rows"], seen["bytes"], seen["stuck"]) == (3, 7, 9, 1)
    assert (await client.get("/api/v1/buckets/full")).json()["moving_from"] == "fast"
    assert (await client.post(move, json={"store": "fast"})).status_code == 409, "cancel it instead"
    back = (await client.delete(move)).json()
    assert (back["source"], back["store"], back["rows"]) == ("slow", "fast", 0)


async def test_notification_targets(settings: Settings, console: Console) -> None:
    async with stores(settings) as store:
        bucket = await store.index.create_bucket("noted", console.first, "us-east-1", 10, "fast")
        rule = ["Queue", "id", "arn:aws:sqs:us-east-1:1:hook", "hook", ["s3:ObjectCreated:*"], "", ""]
        await store.index.configure_bucket(bucket.id, "notification", [rule])
        error = {"error": "ConnectError: 10.0.0.7 refused", "at": 5}
        await store.index.set_note(note_of("hook"), orjson.dumps(error).decode())
        await store.index.set_note(delivered_note("hook"), '{"at": 7, "messages": 1}')
    client, targets = console.client, "/api/v1/buckets/noted/notification-targets"
    hook, other = (await client.get(targets)).json()
    assert (hook["used"], hook["delivered"], hook["error"], hook["failing_since"]) == (True, 7, error["error"], 5)
    assert hook["arn"].endswith(":hook")
    assert (other["used"], other["error"], other["delivered"]) == (False, None, None)
    assert (await client.post(f"{targets}/test", json={"target": "other"})).status_code == 409
    assert (await client.post(f"{targets}/test", json={"target": "hook"})).status_code == 202
    assert (await client.post(f"{targets}/test", json={"target": "hook"})).status_code == 429
    async with stores(settings) as store:
        (message,) = await store.index.messages("hook", 10)
        assert orjson.loads(message.message)["Event"] == "s3:TestEvent"
        found = await store.index.bucket("noted")
        assert found is not None
        assert "hook" in found.settings, "the test changed the rules"
    console.become(allow("s3:GetBucketNotification"))
    assert (await client.get(targets)).json()[0]["error"] == "ConnectError", "an address was told"
    assert (await client.post(f"{targets}/test", json={"target": "hook"})).status_code == 403
    console.become(allow("s3:ListBucket"))
    assert (await client.get(targets)).status_code == 403


async def test_a_policy_is_checked_before_it_is_put(settings: Settings, console: Console) -> None:
    await make(settings, console.first)

    async def check(bucket: str, policy: object) -> tuple[str, bool]:
        text = policy if isinstance(policy, str) else orjson.dumps(policy).decode()
        answer = await console.client.post(f"/api/v1/buckets/{bucket}/policy-check", json={"policy": text})
        assert answer.status_code == 200, answer.text
        return answer.json()["problem"], answer.json()["public"]

    assert await check("full", _policy("full")) == ("", True)
    problem, public = await check("plain", _policy("plain"))
    assert "public access block" in problem
    assert public
    assert await check("full", "{") == ("This policy contains invalid Json", False)
    assert await check("full", _policy("another")) == ("Policy has invalid resource", False)
    stranger = {**_policy("full")["Statement"][0], "Principal": {"AWS": "arn:aws:iam::123456789012:user/none"}}
    assert (await check("full", {**EVERYBODY, "Statement": [stranger]}))[0].startswith("Invalid principal in policy")
    path = "/api/v1/buckets/full/policy-check"
    everything = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "arn:aws:s3:::full"}
    for transport, locks_out in (("false", True), ("true", False)):
        denied = {**everything, "Condition": {"Bool": {"aws:SecureTransport": transport}}}
        text = orjson.dumps({**EVERYBODY, "Statement": [denied]}).decode()
        answer = (await console.client.post(path, json={"policy": text})).json()
        assert (answer["problem"], answer["locks_out"]) == ("", locks_out)
    assert (await console.client.post(path, json={"policy": " " * 65_537})).status_code == 422
    console.become(allow("s3:ListBucket"))
    assert (await console.client.post(path, json={"policy": "{}"})).status_code == 403


class Slow:
    """An index whose counts take a while."""

    def __init__(self, seconds: float, clock: list[float]) -> None:
        self.seconds, self.clock, self.counts, self.fails = seconds, clock, 0, False

    async def bucket_totals(self, _: int) -> Totals:
        self.counts += 1
        if self.fails:
            raise StoreUnavailable()
        self.clock[0] += self.seconds
        return Totals(self.counts, 0, 0, 0, 0, 0, 0)


async def test_a_count_is_repeated_when_it_may_be() -> None:
    clock = [0.0]
    index = Slow(1.0, clock)
    counts = BucketCounts(index, lambda: clock[0])  # type: ignore[arg-type]
    bucket = Bucket(1, "b", "me", "", 0)
    for seconds, expected in ((0.0, 1), (19.0, 1), (2.0, 2)):
        clock[0] += seconds
        await counts.find([bucket])
        assert index.counts == expected
    index.fails = True
    clock[0] += 100
    assert (await counts.find([bucket]))[1].totals.objects == 2, "what was counted is told while the index is away"
    await counts.close()
