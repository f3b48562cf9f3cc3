"""Every route of the API asks who calls, and whether they may: also those that are added later."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI

from sluice_s3.app.access.admin_actions import DESCRIPTIONS
from sluice_s3.app.access.policy.identity_policies import parse_identity
from sluice_s3.app.admin.sessions.guard import API, OPEN_ROUTES, api_routes, check_routes, require
from tests.unit.admin.console_client import Console

OF_EVERYBODY = {"/session", "/iam", "/signatures", "/bucket-choices", "/simulation"}
"""Routes for all who are signed in: what they do is authorized where it is done."""
BY_RIGHTS_TO_BUCKETS = {
    ("GET", "/buckets"),
    ("GET", "/buckets/{name}"),
    ("GET", "/buckets/{name}/move"),
    ("GET", "/buckets/{name}/notification-targets"),
    ("GET", "/buckets/{name}/quota"),
    ("POST", "/buckets/{name}/lifecycle/preview"),
    ("POST", "/buckets/{name}/notification-targets/test"),
    ("POST", "/buckets/{name}/policy-check"),
}
"""Routes that rights to S3 allow: `test_buckets` and `test_lifecycle_preview` have their tests."""


def needs_action(method: str, path: str) -> bool:
    """Whether a route needs an action of the gateway."""
    short = path.removeprefix(API)
    return short not in OF_EVERYBODY and (method, short) not in BY_RIGHTS_TO_BUCKETS


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Methods and paths of the API, with a name in each place for one."""
    found = {(method, str(route.path)) for route in api_routes(app) for method in route.methods or ()}
    assert len(found) > 10
    return sorted(found - OPEN_ROUTES)


def filled(path: str) -> str:
    return re.sub(r"{[^}]*}", "1", path)


async def test_nobody_and_a_user_without_rights_get_nothing(site: Console) -> None:
    nobody, user = site.browser(), await site.sign_in(*await site.user("ann"))
    for method, path in routes(site.app):
        assert (await nobody.request(method, filled(path))).status_code == 401, (method, path)
        if needs_action(method, path):
            answer = await user.request(method, filled(path), json={} if method not in ("GET", "DELETE") else None)
            assert answer.status_code == 403, (method, path, answer.text)
            assert "sluice:" in answer.json()["detail"]


async def test_what_administers_no_other_account_is_refused_to_their_own(site: Console) -> None:
    """All rights of another account are none here."""
    root = await site.sign_in()
    made = (await root.post("/api/v1/accounts", json={})).json()
    theirs = await site.sign_in(made["access_key"], made["secret_key"])
    for method, path in routes(site.app):
        if needs_action(method, path):
            answer = await theirs.request(method, filled(path), json={} if method not in ("GET", "DELETE") else None)
            assert answer.status_code == 403, (method, path)


def test_a_route_without_a_guard_stops_the_start() -> None:
    app = FastAPI()
    app.add_api_route(f"{API}/open", lambda: None)
    with pytest.raises(ValueError, match="/open"):
        check_routes(app)


def test_an_action_that_is_not_listed_cannot_be_required() -> None:
    with pytest.raises(ValueError, match="sluice:Nothing"):
        require("sluice:Nothing")


def test_policies_name_the_actions() -> None:
    document = b'{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sluice:*", "Resource": "*"}}'
    (statement,) = parse_identity(document).statements
    assert statement.actions == DESCRIPTIONS.keys()
