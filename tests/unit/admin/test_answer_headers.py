"""What every answer of the admin listener tells browsers."""

from __future__ import annotations

import pytest

from sluice_s3.app.admin.answer_headers import FAILED
from tests.unit.admin.console_client import Console
from tests.unit.admin.sessions.conftest import prepared, settings, site  # noqa: F401 - fixtures

STRICT = ("default-src 'none'", "script-src 'self';", "style-src 'self';", "base-uri 'none'", "frame-ancestors 'none'")


async def test_every_answer(site: Console) -> None:  # noqa: F811
    browser = await site.sign_in()
    for path in ("/", "/console/", "/api/v1/session", "/api/v1/none", "/metrics", "/nothing", "/docs"):
        answer = await browser.get(path)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert len(answer.headers["x-request-id"]) == 16
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert "access-control-allow-origin" not in answer.headers
    assert (await browser.get("/api/v1/session")).headers["cache-control"] == "no-store"


async def test_the_policy_of_the_console(site: Console) -> None:  # noqa: F811
    policy = (await site.browser().get("/console/")).headers["content-security-policy"]
    assert all(part in policy for part in STRICT)
    assert "unsafe" not in policy
    assert "connect-src 'self' http://localhost:9000;" in policy


async def test_the_page_of_the_api_needs_the_token(site: Console) -> None:  # noqa: F811
    """It runs scripts from elsewhere: a session is not enough."""
    browser = await site.sign_in()
    for path in ("/docs", "/openapi.json"):
        assert (await browser.get(path)).status_code == 401
    token = site.browser(authorization="Bearer sesame-sesame")
    policy = (await token.get("/docs")).headers["content-security-policy"]
    assert "https://cdn.jsdelivr.net" in policy
    assert (await token.get("/openapi.json")).json()["paths"]["/api/v1/session"]


async def test_a_fault_of_ours_says_nothing_of_the_inside(
    site: Console,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    browser = await site.sign_in()

    def fail(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(site.index, "accounts", fail)
    answer = await browser.get("/api/v1/iam")
    assert answer.status_code == 200
    monkeypatch.setattr(site.app.state.key_uses, "note", fail)
    answer = await browser.get("/api/v1/session")
    assert (answer.status_code, answer.json()) == (500, {"detail": FAILED})
    assert answer.headers["x-request-id"] in caplog.text
