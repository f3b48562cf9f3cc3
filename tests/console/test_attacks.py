"""Attacks on the console by a real browser: what a page of the S3 listener, and names of keys, can do to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

ATTACK = """<!doctype html><title>attack</title><body><script>
const console_ = CONSOLE, results = {};
const attempt = async (name, work) => {
  try { results[name] = await Promise.race([work(), new Promise((done) => setTimeout(done, 3000, "timeout"))]); }
  catch (error) { results[name] = "refused"; }
};
const body = JSON.stringify({ id: "attacker", display_name: "attacker" });
const post = (options) => fetch(console_ + "/api/v1/accounts", { method: "POST", credentials: "include", body, ...options });
const load = (tag, field, path) => new Promise((done) => {
  const made = document.createElement(tag);
  made.onload = () => done("loaded"); made.onerror = () => done("refused");
  made[field] = console_ + path; document.body.append(made);
});
(async () => {
  await attempt("cookie", async () => document.cookie);
  await attempt("json", async () => (await post({ headers: { "content-type": "application/json" } })).status);
  await attempt("no-cors", async () => (await post({ mode: "no-cors", headers: { "content-type": "text/plain" } })).status);
  await attempt("csrf", async () => (await post({ headers: { "content-type": "application/json", "x-sluice-csrf": "x" } })).status);
  await attempt("session", async () => (await fetch(console_ + "/api/v1/session", { credentials: "include" })).text());
  await attempt("put", async () => (await fetch(console_ + "/api/v1/buckets/BUCKET/quota", {
    method: "PUT", credentials: "include", body: '{"objects":1}', headers: { "content-type": "application/json" } })).status);
  await attempt("sign-out", async () => (await fetch(console_ + "/api/v1/session", { method: "DELETE", credentials: "include" })).status);
  await attempt("script", () => load("script", "src", "/api/v1/session"));
  await attempt("image", () => load("img", "src", "/console/static/x/icon.svg"));
  await attempt("events", () => new Promise((done) => {
    const source = new EventSource(console_ + "/api/v1/live/overview", { withCredentials: true });
    source.onopen = () => done("open"); source.onerror = () => done("refused"); source.onmessage = () => done("read");
  }));
  await attempt("form", async () => {
    const frame = document.createElement("iframe"); frame.name = "sink"; document.body.append(frame);
    const form = document.createElement("form");
    form.action = console_ + "/api/v1/accounts"; form.method = "post"; form.enctype = "text/plain"; form.target = "sink";
    const field = document.createElement("input"); field.name = '{"id":"attacker","display_name":"'; field.value = '"}';
    form.append(field); document.body.append(form); form.submit();
    await new Promise((done) => setTimeout(done, 500));
    return "sent";
  });
  await attempt("frame", async () => {
    const frame = document.createElement("iframe"); frame.src = console_ + "/console/"; document.body.append(frame);
    await new Promise((done) => { frame.onload = done; setTimeout(done, 2000); });
    return frame.contentWindow.length;
  });
  await attempt("window", async () => {
    const opened = window.open(console_ + "/console/");
    await new Promise((done) => setTimeout(done, 1000));
    return opened && !opened.closed ? "held" : "cut";
  });
  // a session of the attacker's own, for a path of the API, which browsers send before the victim's
  document.cookie = COOKIE + "=1.ASIA" + "A".repeat(16) + ".9999999999." + "A".repeat(43) + "; path=/api";
  window.results = results;
})();
</script></body>"""


@pytest.fixture
def context(browser: Browser, gateway: Gateway) -> Iterator[BrowserContext]:
    """A browser in which the first account is signed in to the console."""
    made = browser.new_context(base_url=gateway.admin)
    answer = made.request.post(
        "/api/v1/session",
        data={"access_key": ACCESS_KEY, "secret_key": SECRET_KEY},
        headers={"origin": gateway.admin},
    )
    assert answer.ok, answer.text()
    yield made
    made.close()


def test_a_page_of_the_s3_listener_gets_nowhere(
    context: BrowserContext, gateway: Gateway, s3: Any, bucket: str
) -> None:
    """It is of the same site, so that the browser sends the console's cookie with what it asks."""
    (cookie,) = context.cookies()
    assert cookie.get("httpOnly") is True
    assert cookie.get("sameSite") == "Strict"
    page_text = ATTACK.replace("CONSOLE", json.dumps(gateway.admin)).replace("BUCKET", bucket)
    page_text = page_text.replace("COOKIE", json.dumps(cookie["name"]))
    s3.put_object(Bucket=bucket, Key="page.html", Body=page_text.encode(), ContentType="text/html")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "page.html"})
    page = context.new_page()
    page.goto(url)
    page.wait_for_function("window.results")
    results = page.evaluate("window.results")
    answered = {name: results[name] for name in results if name not in ("cookie", "no-cors", "form", "frame", "window")}
    assert set(answered.values()) == {"refused"}, answered
    assert results["cookie"] == ""
    assert results["no-cors"] in (0, "refused"), "an answer that it cannot read"
    assert results["frame"] == 0
    assert results["window"] == "cut"
    signed_in = context.request.get("/api/v1/session")
    assert signed_in.ok, "neither signed out nor shut out"
    accounts = context.request.get("/api/v1/accounts").text()
    assert "attacker" not in accounts
    assert context.request.get(f"/api/v1/buckets/{bucket}/quota").json()["objects"] is None


def test_the_s3_listener_takes_no_cookie_and_sets_none(context: BrowserContext, gateway: Gateway, bucket: str) -> None:
    answer = context.request.get(f"{gateway.endpoint}/{bucket}")
    assert answer.status == 403
    assert "set-cookie" not in answer.headers
    assert httpx.get(f"{gateway.endpoint}/{bucket}").status_code == 403
