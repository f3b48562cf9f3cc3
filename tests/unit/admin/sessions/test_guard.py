"""Every route of the API asks who calls, and whether they may: also those that are added later."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant

from sluice_s3.app.access.admin_actions import DESCRIPTIONS
from sluice_s3.app.access.policy.identity_policies import parse_identity
from sluice_s3.app.admin.sessions.guard import API, OPEN_ROUTES, Guard, api_routes, check_routes, require
from tests.support.settings import ROOT
from tests.unit.admin.console_client import Console

NAME = "pail"
"""Of a bucket of the first account, and of what else a path may name."""
OF_EVERYBODY = {
    ("GET", "/session"),
    ("GET", "/bucket-choices"),
    ("GET", "/iam"),
}
"""Routes that succeed for all who are signed in. What they lead to is authorized where it is done."""


OF_ACCOUNTS = {("GET", "/buckets"), ("GET", "/people/users"), ("POST", "/iam")}
"""Routes by which an account sees what is its own."""


BODIES: dict[str, dict[str, Any]] = {
    "/buckets/{name}/notification-targets/test": {"target": "hook"},
    "/buckets/{name}/policy-check": {"policy": "{}"},
    "/iam": {"action": "ListUsers", "parameters": {}},
    "/simulation": {"principal": ROOT.access, "action": "s3:GetObject", "bucket": NAME},
}
"""Whole requests of routes that read what they are asked before they say no."""


def routes(app: FastAPI) -> list[tuple[str, str, str | None]]:
    """Methods and paths of the API, and the actions that they require."""
    found = {
        (method, str(route.path).removeprefix(API), action_of(route.dependant))
        for route in api_routes(app)
        for method in route.methods or ()
        if (method, route.path) not in OPEN_ROUTES
    }
    assert len(found) > 10
    return sorted(found, key=str)


def action_of(dependant: Dependant) -> str | None:
    """Return the action of a route's guard; None for one that only asks who calls."""
    found = [one.call.action for one in dependant.dependencies if isinstance(one.call, Guard)]
    return next((action for action in found if action is not None), None)


async def ask(browser: httpx.AsyncClient, method: str, path: str) -> httpx.Response:
    body = None if method in ("GET", "DELETE") else BODIES.get(path, {})
    return await browser.request(method, API + re.sub(r"{[^}]*}", NAME, path), json=body)


async def test_nobody_gets_anything(site: Console) -> None:
    nobody = site.browser()
    for method, path, _ in routes(site.app):
        assert (await ask(nobody, method, path)).status_code == 401, (method, path)


async def test_who_has_no_rights_gets_nothing(site: Console) -> None:
    """Neither a user without policies, nor another account with all of its own rights."""
    await site.index.create_bucket(NAME, await site.app.state.sessions.first_account(), "us-east-1", 10)
    root = await site.sign_in()
    made = (await root.post("/api/v1/accounts", json={})).json()
    user = await site.sign_in(*await site.user("ann"))
    other = await site.sign_in(made["access_key"], made["secret_key"])
    granted = set()
    for method, path, action in routes(site.app):
        if (method, path) == ("DELETE", "/session"):
            continue
        for browser in (user, other):
            answer = await ask(browser, method, path)
            if action is not None:
                assert (answer.status_code, action in answer.json()["detail"]) == (403, True), (method, path)
            elif answer.status_code not in (400, 403, 404, 422):
                granted.add((browser is user, method, path))
    assert {(method, path) for is_user, method, path in granted if is_user} == OF_EVERYBODY
    assert {(method, path) for is_user, method, path in granted if not is_user} == OF_EVERYBODY | OF_ACCOUNTS


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
