"""Signing in to the console, and what ends a session."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import pytest

from sluice_s3.app.admin.sessions import cookie as cookies
from sluice_s3.app.index.iam.rows import Session, console_session_name
from sluice_s3.app.main import _find_console
from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT
from tests.unit.admin.console_client import ORIGIN, Console, console
from tests.unit.admin.test_admin import Alone

SESSION = "/api/v1/session"
KEYS = {"access_key": ROOT.access, "secret_key": ROOT.secret}
Later = Callable[[float], None]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Let seconds pass."""
    real = time.time

    def pass_time(seconds: float) -> None:
        monkeypatch.setattr(time, "time", lambda: real() + seconds)
        monkeypatch.setattr(time, "time_ns", lambda: int((real() + seconds) * 1e9))

    return pass_time


async def status(browser: httpx.AsyncClient) -> int:
    return (await browser.get(SESSION)).status_code


async def test_the_first_account_signs_in_and_out(site: Console) -> None:
    browser = site.browser()
    assert await status(browser) == 401
    answer = await browser.post(SESSION, json=KEYS)
    assert answer.status_code == 200
    (sent,) = answer.headers.get_list("set-cookie")
    assert sent.startswith("sluice-9001=1.ASIA")
    assert sent.endswith("; Path=/; HttpOnly; SameSite=Strict")
    assert ROOT.secret not in sent
    found = (await browser.get(SESSION)).json()
    first = await site.app.state.sessions.first_account()
    assert (found["account_id"], found["kind"], found["root"], found["name"]) == (first, "Account", True, "root")
    assert "sluice:ManageAccounts" in found["actions"]
    assert found["endpoint"] == "http://localhost:9000"
    assert 43_100 < found["expires"] / 1000 - time.time() <= 43_200
    browser.headers["x-sluice-csrf"] = found["csrf"]
    kept = dict(browser.cookies)
    assert (await browser.delete(SESSION)).status_code == 204
    assert await status(browser) == 401
    browser.cookies.update(kept)
    assert await status(browser) == 401, "the row is gone"


async def test_a_user_signs_in(site: Console) -> None:
    browser = await site.sign_in(*await site.user("ann", "sluice:ListStores", "s3:*"))
    found = (await browser.get(SESSION)).json()
    assert (found["kind"], found["name"], found["root"]) == ("User", "ann", False)
    assert found["actions"] == ["sluice:ListStores"]
    assert found["arn"].endswith(":user/ann")
    assert (await browser.get("/api/v1/stores")).status_code == 200
    refused = await browser.get("/api/v1/accounts")
    assert refused.status_code == 403
    assert "sluice:ListAccounts" in refused.json()["detail"]


async def test_conditions_of_policies_hold(site: Console) -> None:
    keys = await site.user("ann", "sluice:*", Condition={"IpAddress": {"aws:SourceIp": "127.0.0.1"}})
    assert (await (await site.sign_in(*keys)).get("/api/v1/stores")).status_code == 200
    keys = await site.user("bob", "sluice:*", Condition={"IpAddress": {"aws:SourceIp": "10.0.0.1"}})
    assert (await (await site.sign_in(*keys)).get("/api/v1/stores")).status_code == 403


async def test_other_accounts_administer_nothing(site: Console) -> None:
    root = await site.sign_in()
    made = (await root.post("/api/v1/accounts", json={"display_name": "two"})).json()
    browser = await site.sign_in(made["access_key"], made["secret_key"])
    found = (await browser.get(SESSION)).json()
    assert (found["kind"], found["root"], found["actions"]) == ("Account", False, [])
    assert (await browser.get("/api/v1/stores")).status_code == 403


async def test_wrong_keys_are_all_answered_alike(site: Console) -> None:
    wrong = [(ROOT.access, "wrong"), ("nobody", ROOT.secret), (ROOT.access, "ä"), ("\x00", "\x00"), (ROOT.access, " ")]
    for access_key, secret in wrong:
        answer = await site.browser().post(SESSION, json={"access_key": access_key, "secret_key": secret})
        assert (answer.status_code, answer.json()) == (403, {"detail": "The access key or the secret key is wrong."})
        assert "set-cookie" not in answer.headers


async def test_a_secret_is_never_repeated(site: Console) -> None:
    for body in ({"secret_key": "my-secret"}, {"access_key": "x", "secret_key": "my-secret", "more": "my-secret"}):
        answer = await site.browser().post(SESSION, json=body)
        assert answer.status_code == 422
        assert "my-secret" not in answer.text


async def test_what_is_disabled_or_temporary_cannot_sign_in(site: Console) -> None:
    key, secret = await site.user("ann")
    await site.iam("UpdateAccessKey", UserName="ann", AccessKeyId=key, Status="Inactive")
    answer = await site.browser().post(SESSION, json={"access_key": key, "secret_key": secret})
    assert (answer.status_code, answer.json()["detail"]) == (403, "This access key, or its account, is disabled.")
    first = await site.app.state.sessions.first_account()
    await site.index.add_session(Session("ASIAX", "hidden-secret", "t", first, "", "", "[]", 0, 1 << 50), 10)
    answer = await site.browser().post(SESSION, json={"access_key": "ASIAX", "secret_key": "hidden-secret"})
    assert answer.status_code == 403
    assert "temporary" in answer.json()["detail"]


async def test_a_user_who_may_have_no_session_token_cannot_sign_in(site: Console) -> None:
    key, secret = await site.user("ann", "sts:GetSessionToken", Effect="Deny")
    answer = await site.browser().post(SESSION, json={"access_key": key, "secret_key": secret})
    assert answer.status_code == 403
    assert "sts:GetSessionToken" in answer.json()["detail"]


async def test_the_session_ends_with_its_key(site: Console) -> None:
    key, secret = await site.user("ann")
    await site.iam("CreateUser", UserName="bob")
    browser = await site.sign_in(key, secret)
    (temporary,) = [value.split(".")[1] for value in browser.cookies.values()]
    assert await site.index.access_key(temporary) is not None
    await site.iam("UpdateAccessKey", UserName="ann", AccessKeyId=key, Status="Inactive")
    assert await status(browser) == 401
    assert await site.index.access_key(temporary) is None, "what it signed ends too"
    await site.iam("UpdateAccessKey", UserName="ann", AccessKeyId=key, Status="Active")
    assert await status(browser) == 200
    await site.iam("DeleteAccessKey", UserName="ann", AccessKeyId=key)
    assert await status(browser) == 401


async def test_the_session_ends_with_its_account_and_with_a_new_secret(site: Console) -> None:
    root = await site.sign_in()
    made = (await root.post("/api/v1/accounts", json={})).json()
    browser = await site.sign_in(made["access_key"], made["secret_key"])
    await root.patch(f"/api/v1/accounts/{made['id']}", json={"disabled": True})
    assert await status(browser) == 401
    await root.patch(f"/api/v1/accounts/{made['id']}", json={"disabled": False})
    assert await status(browser) == 200
    await site.index.set_secret(made["id"], "", made["access_key"], "another-secret", False)
    assert await status(browser) == 401
    await root.delete(f"/api/v1/accounts/{made['id']}")
    assert await status(browser) == 401
    assert await status(root) == 200


async def test_a_key_of_the_same_name_of_another_owner_opens_nothing(site: Console) -> None:
    """A row that claims it: sessions of STS have names of their own."""
    key, secret = await site.user("ann")
    first = await site.app.state.sessions.first_account()
    forged = Session(
        "ASIA" + "A" * 16, "s", "t", first, "", console_session_name(key, secret), "[]", 0, 1 << 50
    )  # of the account itself, by a user's key
    await site.index.add_session(forged, 10)
    assert await site.index.access_key(forged.access_key) is None


async def test_it_ends_without_use_and_after_its_longest_time(site: Console, later: Later) -> None:
    browser = await site.sign_in()
    later(1790)
    answer = await browser.get(SESSION)
    assert answer.status_code == 200
    assert "set-cookie" in answer.headers, "it was used"
    later(1790 + 1790)
    assert await status(browser) == 200
    later(1790 + 1790 + 1801)
    answer = await browser.get(SESSION)
    assert (answer.status_code, "nothing was asked" in answer.json()["detail"]) == (401, True)
    browser = await site.sign_in()
    began = 1790 + 1790 + 1801
    for at in range(1700, 43_200, 1700):
        later(began + at)
        assert await status(browser) == 200
    later(began + 43_201)
    assert await status(browser) == 401


async def test_the_cookie_is_renewed_once_a_minute_at_most(site: Console, later: Later) -> None:
    browser = await site.sign_in()
    assert "set-cookie" not in (await browser.get(SESSION)).headers
    later(61)
    assert "set-cookie" in (await browser.get(SESSION)).headers
    assert "set-cookie" not in (await browser.get(SESSION)).headers


async def test_what_a_page_asks_by_itself_does_not_keep_it(site: Console, later: Later) -> None:
    """Polls of a page that nobody touches, and streams, which browsers open again by themselves."""
    browser = await site.sign_in()
    for at in (600, 1200, 1790):
        later(at)
        answer = await browser.get(SESSION, headers={"x-sluice-unattended": "yes"})
        assert (answer.status_code, "set-cookie" in answer.headers) == (200, False)
        assert "set-cookie" not in (await browser.get("/api/v1/live/load-tests/20260101-000000-ffff")).headers
    later(1801)
    assert await status(browser) == 401


async def test_a_cookie_cannot_be_made_or_changed(site: Console) -> None:
    browser = await site.sign_in()
    (name, value), *_ = browser.cookies.items()
    version, key, used, signature = value.split(".")
    wrong = [
        f"{version}.{key}.{int(used) + 1}.{signature}",
        f"{version}.{key}.{used}.{signature[:-3]}{'AAA' if signature[-3:] != 'AAA' else 'BBB'}",
        f"{version}.{key[:-1]}{'A' if key[-1] != 'A' else 'B'}.{used}.{signature}",
        f"{version}.{ROOT.access}.{used}.{signature}",
        "", "x", value + "x", "1....", "\x7f",
    ]  # fmt: skip
    for one in wrong:
        answer = await site.browser(cookie=f"{name}={one}").get(SESSION)
        assert answer.status_code == 401, one


async def test_keys_of_sts_make_no_session_of_the_console(site: Console) -> None:
    """Their holder knows the secret, and could sign any cookie."""
    first = await site.app.state.sessions.first_account()
    made = Session("ASIA" + "B" * 16, "s", "t", first, "", "name", "[]", 0, 1 << 50)
    await site.index.add_session(made, 10)
    value = cookies.write_cookie(ORIGIN, made.access_key, made.secret, int(time.time())).partition(";")[0]
    assert (await site.browser(cookie=value).get(SESSION)).status_code == 401


async def test_signing_in_makes_a_new_session_and_ends_the_earlier_one(site: Console) -> None:
    """Session fixation."""
    browser = await site.sign_in()
    before = dict(browser.cookies)
    assert (await browser.post(SESSION, json=KEYS)).status_code == 200
    assert dict(browser.cookies) != before
    other = site.browser()
    other.cookies.update(before)
    assert await status(other) == 401


async def test_two_cookies_are_none(site: Console) -> None:
    """A page of another port may set one for a path, which browsers send first."""
    mine, theirs = await site.sign_in(), await site.sign_in()
    both = "; ".join(f"{name}={value}" for one in (theirs, mine) for name, value in one.cookies.items())
    answer = await site.browser(cookie=both).get(SESSION)
    assert (answer.status_code, "two sessions" in answer.json()["detail"]) == (401, True)
    ((name, value),) = mine.cookies.items()
    false = f"{name}={value[:-3]}AAA; {name}=x; {name}={value}"
    assert (await site.browser(cookie=false).get(SESSION)).status_code == 200, "false ones shut nobody out"


async def test_console_off(settings: Settings) -> None:
    async with console(settings.model_copy(update={"console": False})) as site:
        browser = site.browser()
        assert (await browser.post(SESSION, json=KEYS)).status_code == 404
        for path in (SESSION, "/", "/console", "/console/"):
            assert (await browser.get(path)).status_code == 404
        token = site.browser(authorization="Bearer sesame-sesame")
        assert (await token.get("/api/v1/stores")).status_code == 200


def test_s3_knows_no_console_that_is_off(settings: Settings) -> None:
    """Nobody is led to it, and no other origin may read."""
    assert _find_console(settings, Alone(b"")) is None, "no admin listener"  # type: ignore[arg-type]

    class Server(Alone):
        def addresses(self) -> dict[str, str]:
            return {"s3": "http://0.0.0.0:9000", "admin": "http://0.0.0.0:9001"}

    assert _find_console(settings, Server(b"")) is not None  # type: ignore[arg-type]
    assert _find_console(settings.model_copy(update={"console": False}), Server(b"")) is None  # type: ignore[arg-type]


async def test_the_admin_token_is_a_caller_too(site: Console) -> None:
    found = (await site.browser(authorization="Bearer sesame-sesame").get(SESSION)).json()
    assert (found["kind"], found["root"], found["csrf"], found["expires"]) == ("Token", True, "", None)
