"""The audit log of the admin API: what it records, and what a query of it returns."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from sluice_s3.app.admin.operations.audit_trail import CHANGES_NOTHING, OF_IAM
from sluice_s3.app.admin.sessions.guard import api_routes
from tests.support.settings import ROOT
from tests.unit.admin.console_client import Console

pytestmark = pytest.mark.slow


async def events(site: Console, **query: str) -> list[dict[str, Any]]:
    """All events, oldest first."""
    root = await site.sign_in()
    answer = await root.get("/api/v1/audit-events", params={"limit": "500", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["events"][::-1]  # type: ignore[no-any-return]


async def test_changes_by_a_session_and_by_the_token(site: Console) -> None:
    await site.index.create_bucket("box", await site.app.state.sessions.first_account(), "us-east-1", 10)
    root = await site.sign_in()
    put = await root.put("/api/v1/buckets/box/quota", json={"bytes": 5, "objects": None})
    assert put.status_code == 204
    token = (site.app.state.settings.home / "admin-token").read_text().strip()
    made = await site.browser().post(
        "/api/v1/accounts", json={"display_name": "new"}, headers={"authorization": f"Bearer {token}"}
    )
    assert made.status_code == 201
    signed_in, quota, account, _ = await events(site)
    assert (signed_in["action"], signed_in["outcome"]) == ("sluice:SignIn", "Success")
    assert signed_in["access_key"] == ROOT.access
    assert signed_in["principal"].endswith(":root")
    assert (quota["source"], quota["action"], quota["resource"]) == ("console", "sluice:PutQuota", "buckets/box/quota")
    assert (quota["address"], quota["request_id"]) == ("127.0.0.1", put.headers["x-request-id"])
    assert quota["before"] is None
    assert quota["after"].keys() == {"quota"}
    assert (account["source"], account["principal"], account["access_key"]) == ("admin", "admin-token", "")
    assert account["after"]["name"] == "new"
    assert made.json()["secret_key"] not in orjson.dumps(account).decode()


async def test_nobody_fills_the_log(site: Console) -> None:
    """What is refused before a key is looked at is not noted: nothing slows it down."""
    foreign, body = site.browser(), {"access_key": ROOT.access, "secret_key": "wrong-secret"}
    for _ in range(3):
        await foreign.post("/api/v1/session", json=body, headers={"origin": "http://evil.test"})
        await foreign.post("/api/v1/session", json={})
        await foreign.post("/api/v1/accounts", json={})
    assert [one["action"] for one in await events(site)] == ["sluice:SignIn"], "of who asks"


async def test_sign_in_that_fails_tells_a_known_key_alone(site: Console) -> None:
    for key in (ROOT.access, "a-secret-in-the-wrong-field"):
        body = {"access_key": key, "secret_key": "wrong-wrong-wrong"}
        assert (await site.browser().post("/api/v1/session", json=body)).status_code == 403
    known, unknown, _ = await events(site)
    assert (known["action"], known["outcome"], known["access_key"]) == ("sluice:SignIn", "AccessDenied", ROOT.access)
    assert (unknown["action"], unknown["access_key"]) == ("sluice:SignIn", "")


async def test_what_a_user_may_not_is_recorded_and_what_nobody_asked_is_not(site: Console) -> None:
    ann = await site.sign_in(*await site.user("ann"))
    assert (await ann.post("/api/v1/accounts", json={"display_name": "x"})).status_code == 403
    assert (await ann.get("/api/v1/audit-events")).status_code == 403
    assert (await site.browser().post("/api/v1/accounts", json={"display_name": "x"})).status_code == 401
    assert (await site.browser().get("/api/v1/audit-events")).status_code == 401
    _, refused, _ = await events(site)
    assert (refused["action"], refused["outcome"]) == ("sluice:AddAccount", "AccessDenied")
    assert refused["principal"].endswith(":user/ann")


async def test_operations_of_iam_name_themselves_and_reads_are_left_out(site: Console) -> None:
    root = await site.sign_in()
    first = await site.app.state.sessions.first_account()
    for action, parameters in (("CreateUser", {"UserName": "bob"}), ("ListUsers", {}), ("DeleteUser", {})):
        await root.post(f"/api/v1/accounts/{first}/iam/{action}", json={"parameters": parameters})
    _, made, refused, _ = await events(site)
    assert (made["action"], made["after"]["name"]) == ("iam:CreateUser", "bob")
    assert made["resource"].endswith(":user/bob")
    assert (refused["action"], refused["outcome"]) != ("iam:ListUsers", "Success")


async def test_pages_filters_and_lines(site: Console) -> None:
    for number in range(5):
        await site.sign_in(*await site.user(f"user{number}"))
    root = await site.sign_in()
    page = (await root.get("/api/v1/audit-events", params={"limit": "2", "principal": "*:user/*"})).json()
    assert [one["principal"].rpartition("/")[2] for one in page["events"]] == ["user4", "user3"]
    again = await root.get("/api/v1/audit-events", params={"principal": "*:user/*", "after": page["next"]})
    assert len(again.json()["events"]) == 3
    assert again.json()["next"] is None
    lines = await root.get("/api/v1/audit-events", params={"format": "jsonl", "outcome": "Success"})
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert "attachment" in lines.headers["content-disposition"]
    assert [orjson.loads(line)["action"] for line in lines.text.splitlines()] == ["sluice:SignIn"] * 6
    future = {"since": "2999-01-01T00:00:00Z"}
    assert (await root.get("/api/v1/audit-events", params=future)).json()["events"] == []
    for wrong in ({"after": "x"}, {"after": f"1.{1 << 63}"}, {"limit": "0"}, {"since": "yesterday"}, {"limit": "501"}):
        assert (await root.get("/api/v1/audit-events", params=wrong)).status_code == 422, wrong


async def test_every_route_that_takes_a_body_is_one_of_a_change_or_named_as_none(site: Console) -> None:
    named = {route.name for route in api_routes(site.app) if route.methods and not route.methods <= {"GET", "HEAD"}}
    assert named >= CHANGES_NOTHING | OF_IAM
    root = await site.sign_in()
    requests = {"requests": [{"method": "GET", "bucket": "box", "query": {}, "headers": {}}]}
    assert (await root.post("/api/v1/signatures", json=requests)).status_code == 200
    assert (await root.post("/api/v1/simulation", json={})).status_code == 422
    assert [one["action"] for one in await events(site)] == ["sluice:SignIn"] * 2


async def test_an_account_with_a_name_of_a_route_is_audited(site: Console) -> None:
    root = await site.sign_in()
    assert (await root.delete("/api/v1/accounts/iam")).status_code == 404
    _, refused, _ = await events(site)
    assert (refused["action"], refused["outcome"], refused["resource"]) == (
        "sluice:RemoveAccount",
        "NotFound",
        "accounts/iam",
    )
