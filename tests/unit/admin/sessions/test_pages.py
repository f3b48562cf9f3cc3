"""Which page a change comes from: cross-site requests, other ports, other names of this machine."""

from __future__ import annotations

import base64

from sluice_s3.app.settings import Settings
from tests.support.settings import ROOT
from tests.unit.admin.console_client import ORIGIN, Console, console

SESSION, ACCOUNTS = "/api/v1/session", "/api/v1/accounts"
KEYS = {"access_key": ROOT.access, "secret_key": ROOT.secret}
FOREIGN_ORIGINS = [
    "http://localhost:9000",
    "https://localhost:9001",
    "http://127.0.0.1:9001",
    "http://localhost",
    "http://localhost:90011",
    "http://evil.test",
    "http://localhost:9001.evil.test",
    "null",
    "",
]


async def test_changes_of_other_pages_are_refused(site: Console) -> None:
    browser = await site.sign_in()
    for origin in FOREIGN_ORIGINS:
        answer = await browser.post(ACCOUNTS, json={}, headers={"origin": origin})
        assert (answer.status_code, "another page" in answer.json()["detail"]) == (403, True), origin
        answer = await site.browser().post(SESSION, json=KEYS, headers={"origin": origin})
        assert answer.status_code == 403, origin
        assert "set-cookie" not in answer.headers


async def test_a_change_needs_an_origin_and_the_token(site: Console) -> None:
    browser = await site.sign_in()
    right = browser.headers["x-sluice-csrf"]
    other = (await site.sign_in()).headers["x-sluice-csrf"]
    for wrong in ("", other, right[:-1], right + "x"):
        answer = await browser.post(ACCOUNTS, json={}, headers={"x-sluice-csrf": wrong})
        assert answer.status_code == 403, wrong
    del browser.headers["origin"]
    assert (await browser.post(ACCOUNTS, json={})).status_code == 403
    browser.headers["origin"] = ORIGIN
    assert (await browser.post(ACCOUNTS, json={})).status_code == 201
    assert (await browser.delete(SESSION, headers={"x-sluice-csrf": ""})).status_code == 403


async def test_nothing_is_read_for_other_pages(site: Console) -> None:
    """A page of the S3 listener is of the same site, and its images and frames send the cookie."""
    browser = await site.sign_in()
    for page in ("same-site", "cross-site"):
        for path in (SESSION, ACCOUNTS):
            assert (await browser.get(path, headers={"sec-fetch-site": page})).status_code == 403


async def test_the_token_of_scripts_needs_neither(site: Console) -> None:
    script = site.browser(origin="http://localhost:9001", authorization="Bearer sesame-sesame")
    del script.headers["origin"]
    assert (await script.post(ACCOUNTS, json={})).status_code == 201


async def test_a_password_that_the_browser_keeps_is_not_used_by_other_pages(site: Console) -> None:
    basic = "Basic " + base64.b64encode(b"me:sesame-sesame").decode()
    browser = site.browser(authorization=basic)
    assert (await browser.post(ACCOUNTS, json={})).status_code == 201
    assert (await browser.post(ACCOUNTS, json={}, headers={"origin": "http://evil.test"})).status_code == 403
    assert (await browser.post(ACCOUNTS, json={}, headers={"sec-fetch-site": "same-site"})).status_code == 403
    del browser.headers["origin"]
    del browser.headers["sec-fetch-site"]
    assert (await browser.post(ACCOUNTS, json={})).status_code == 201, "curl -u"


async def test_who_is_signed_in_stays_that_though_the_browser_keeps_the_token(site: Console) -> None:
    browser = await site.sign_in(*await site.user("ann"))
    browser.headers["authorization"] = "Basic " + base64.b64encode(b"me:sesame-sesame").decode()
    assert (await browser.get(ACCOUNTS)).status_code == 403


ELSEWHERE = [
    ("http://10.0.0.5:9001", "10.0.0.9"),
    ("http://nas.local:9001", "192.168.1.7"),
    ("http://localhost:9001", "10.0.0.9"),
    ("http://evil.test:9001", "127.0.0.1"),  # a name that was bound again to this machine
    ("http://localhost.evil.test:9001", "127.0.0.1"),
    ("http://[2001:db8::1]:9001", "2001:db8::2"),
]


async def test_without_tls_one_signs_in_from_this_machine_only(settings: Settings, site: Console) -> None:
    for origin, address in ELSEWHERE:
        answer = await site.browser(origin, address).post(SESSION, json=KEYS)
        assert (answer.status_code, "SLUICE_CONSOLE_INSECURE" in answer.json()["detail"]) == (403, True), origin
    async with console(settings.model_copy(update={"console_insecure": True})) as open_site:
        for origin, address in ELSEWHERE:
            assert (await open_site.browser(origin, address).post(SESSION, json=KEYS)).status_code == 200, origin


async def test_names_of_this_machine(site: Console) -> None:
    for host in ("127.0.0.1", "[::1]", "sluice.localhost"):
        assert (await site.browser(f"http://{host}:9001", "::1").post(SESSION, json=KEYS)).status_code == 200


async def test_over_tls_the_cookie_is_of_this_host_alone(site: Console) -> None:
    browser = site.browser("https://nas.local", "10.0.0.9")
    (sent,) = (await browser.post(SESSION, json=KEYS)).headers.get_list("set-cookie")
    assert sent.startswith("__Host-Http-sluice-443=")
    assert sent.endswith("; Path=/; HttpOnly; SameSite=Strict; Secure")
    assert (await browser.get(SESSION)).status_code == 200


async def test_a_proxy_that_has_the_certificate(settings: Settings) -> None:
    """It changes scheme and host; the settings say what browsers see."""
    async with console(settings.model_copy(update={"console_url": "https://console.test"})) as site:
        browser = site.browser("http://127.0.0.1:9001")
        browser.headers["origin"] = "https://console.test"
        answer = await browser.post(SESSION, json=KEYS)
        assert answer.headers["set-cookie"].startswith("__Host-Http-sluice-443=")
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert (await browser.get(SESSION, headers={"cookie": cookie})).status_code == 200
        assert (await browser.post(SESSION, json=KEYS, headers={"origin": "https://evil.test"})).status_code == 403


async def test_a_host_that_is_none(site: Console) -> None:
    for host in ("", "a b", "x;script-src *", "evil@localhost", "localhost:99999", "[::1", "a,b"):
        answer = await site.browser().post(SESSION, json=KEYS, headers={"host": host})
        assert answer.status_code == 403
        assert host not in answer.headers["content-security-policy"] or host == ""
