"""A browser's part of the console's protocol, against an admin application in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from sluice_s3.app.access.iam.actions import Call
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, RUN
from sluice_s3.app.admin.app import create_application
from sluice_s3.app.index import Index
from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT
from tests.unit.admin.test_admin import Alone

ORIGIN = "http://localhost:9001"


class Console:
    """An application, and what browsers may ask of it."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.index: Index = app.state.index

    def browser(self, origin: str = ORIGIN, address: str = "127.0.0.1", **headers: str) -> httpx.AsyncClient:
        """A browser with a page of an origin; it keeps cookies."""
        transport = httpx.ASGITransport(self.app, client=(address, 1234))
        sent = {"origin": origin, "sec-fetch-site": "same-origin", **headers}
        return httpx.AsyncClient(transport=transport, base_url=origin, headers=sent)

    async def sign_in(
        self, access_key: str = ROOT.access, secret: str = ROOT.secret, **options: str
    ) -> httpx.AsyncClient:
        """A browser that has signed in, and sends the token of changes."""
        browser = self.browser(**options)
        answer = await browser.post("/api/v1/session", json={"access_key": access_key, "secret_key": secret})
        assert answer.status_code == 200, answer.text
        browser.headers["x-sluice-csrf"] = answer.json()["csrf"]
        return browser

    async def iam(self, action: str, **parameters: str) -> dict[str, Any]:
        """Run an operation of IAM as the first account."""
        first = await self.app.state.sessions.first_account()
        return await RUN[IAM](action, Call(self.index, first, None, Parameters(parameters)))

    async def user(self, name: str, *actions: str, **statement: Any) -> tuple[str, str]:
        """Make a user of the first account who may do actions; returns the keys."""
        await self.iam("CreateUser", UserName=name)
        if actions:
            policy = {"Effect": "Allow", "Action": list(actions), "Resource": "*", **statement}
            text = json.dumps({"Version": "2012-10-17", "Statement": [policy]})
            await self.iam("PutUserPolicy", UserName=name, PolicyName="p", PolicyDocument=text)
        made = (await self.iam("CreateAccessKey", UserName=name))["AccessKey"]
        return made["AccessKeyId"], made["SecretAccessKey"]


@asynccontextmanager
async def console(settings: Settings) -> AsyncIterator[Console]:
    """Run an admin application whose store was prepared before."""
    app = create_application(settings, Alone(b""))
    async with app.router.lifespan_context(app):
        yield Console(app)
