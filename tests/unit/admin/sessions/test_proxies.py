"""A proxy before the admin listener says who the client is, and that it speaks TLS; others cannot."""

from __future__ import annotations

import json

from sluice_s3.app.admin.app import create_application
from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT
from tests.unit.admin.test_admin import Alone
from tests.unit.server.tools import serving

BODY = json.dumps({"access_key": ROOT.access, "secret_key": ROOT.secret}).encode()
HEAD = (
    b"POST /api/v1/session HTTP/1.1\r\nHost: console.test\r\nOrigin: %b\r\nContent-Type: application/json\r\n"
    b"X-Forwarded-For: 10.0.0.9\r\nX-Forwarded-Proto: https\r\nContent-Length: %d\r\n\r\n%b"
)


async def test_only_a_trusted_proxy_is_believed(settings: Settings) -> None:
    app = create_application(settings, Alone(b""))
    async with app.router.lifespan_context(app):
        async with serving(app, trusted_proxies="127.0.0.1") as site:
            got = await site.ask(HEAD % (b"https://console.test", len(BODY), BODY))
            assert got.status == 200, got.body
            assert got.headers["set-cookie"].startswith("__Host-Http-sluice-443=")
            # it is the page over TLS, not one without
            assert (await site.ask(HEAD % (b"http://console.test", len(BODY), BODY))).status == 403
        async with serving(app) as site:
            assert (await site.ask(HEAD % (b"https://console.test", len(BODY), BODY))).status == 403
            got = await site.ask(HEAD % (b"http://console.test", len(BODY), BODY))
            assert (got.status, b"SLUICE_CONSOLE_INSECURE" in got.body) == (403, True)


async def test_clients_behind_a_proxy_guess_apart(settings: Settings) -> None:
    wrong = json.dumps({"access_key": "nobody", "secret_key": "wrong"}).encode()
    app = create_application(settings, Alone(b""))
    async with app.router.lifespan_context(app), serving(app, trusted_proxies="127.0.0.1") as site:
        statuses = [(await site.ask(HEAD % (b"https://console.test", len(wrong), wrong))).status for _ in range(11)]
        assert statuses == [403] * 10 + [429]
        other = HEAD.replace(b"10.0.0.9", b"10.0.0.10") % (b"https://console.test", len(wrong), wrong)
        assert (await site.ask(other)).status == 403
