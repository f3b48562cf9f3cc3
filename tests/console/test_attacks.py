"""Attacks on the console by a real browser: what a page of the S3 listener, and names of keys, can do to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

ATTACK = Path(__file__).with_name("attack.html")


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
    page_text = ATTACK.read_text().replace("CONSOLE", json.dumps(gateway.admin)).replace("BUCKET", bucket)
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


HOSTILE = "<img src=x onerror=alert(1)>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
OBJECTS = {
    f"{HOSTILE}.html": ("text/html", b"<script>alert(1)</script>"),
    '"><svg onload=alert(1)>.svg': ("image/svg+xml", SVG),
    "javascript:alert(1).csv": ("text/csv", f'a,b\n"=1+1",{HOSTILE}\n'.encode()),
    "'-alert(1)-'.json": ("application/json", b'{"a": "<script>alert(1)"}'),
    "{{alert(1)}}${alert(1)}.txt": ("text/plain", HOSTILE.encode()),
}


def test_names_contents_and_metadata_are_text(context: BrowserContext, s3: Any, bucket: str) -> None:
    """What others store cannot run in the console's page: lists, previews, properties, versions, settings, policies."""
    for name, (kind, body) in OBJECTS.items():
        told = {"ContentType": kind, "ContentDisposition": HOSTILE, "Metadata": {"note": HOSTILE}}
        s3.put_object(Bucket=bucket, Key=name, Body=body, **told)
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "javascript:alert", "Value": "a=b:c/d"}]})
    statement = {
        "Sid": HOSTILE,
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": f"arn:aws:s3:::{bucket}/{HOSTILE}",
    }
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    page, alarms = context.new_page(), []
    page.on("dialog", lambda dialog: (alarms.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: alarms.append(message.text) if "Content Security" in message.text else None)
    base = f"/console/buckets/{bucket}"
    page.goto(f"{base}/objects")
    for name in OBJECTS:
        page.get_by_text(name).first.wait_for()
    for name in OBJECTS:
        page.goto(f"{base}/objects?{urlencode({'key': name})}")
        page.get_by_role("tab", name="Preview").wait_for()
        page.wait_for_load_state("networkidle")
        page.get_by_role("tab", name="Properties").click()
        page.get_by_text(HOSTILE).first.wait_for()
        assert page.locator("main [onerror], main [onload], dialog [onerror], dialog [onload]").count() == 0
    for path in ("versions", "settings", "settings/policy"):
        page.goto(f"{base}/{path}")
        page.wait_for_load_state("networkidle")
        assert page.locator("[onerror], [onload]").count() == 0
    question = {"principal": "*", "action": "s3:GetObject", "bucket": bucket, "key": HOSTILE}
    page.goto(f"/console/people/simulator?{urlencode(question)}")
    page.get_by_role("button", name="Simulate").click()
    page.get_by_text(f"statement 1 “{HOSTILE}”").first.wait_for()
    assert page.locator("[onerror], [onload]").count() == 0
    assert alarms == []
