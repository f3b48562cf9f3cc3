"""The room of buckets: list, create, empty, delete, policy, and what a user with few rights sees."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
from playwright.sync_api import Page, Route, expect

from tests.console.tab import Tab
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway


def test_a_bucket_is_made_found_and_deleted(root_tab: Tab, s3: Any) -> None:
    """The name is checked while it is typed; what will be lost is said; everything goes, uploads and markers too."""
    page = root_tab.open("/console/buckets?create=1")
    name = page.get_by_role("textbox", name="Name")
    for wrong, words in (
        ("Ab", "Capital letters"),
        ("a_b", "not allowed"),
        ("1.2.3.4", "IP address"),
        ("a..b", "Two dots"),
    ):
        name.fill(wrong)
        expect(page.get_by_role("alert")).to_contain_text(words)
        expect(page.get_by_role("button", name="Create", exact=True)).to_be_disabled()
    root_tab.check_accessibility()
    s3.create_bucket(Bucket="there")
    name.fill("there")
    page.get_by_label("Keep versions").check()
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("There is a bucket of this name already")
    assert "Status" not in s3.get_bucket_versioning(Bucket="there")
    s3.delete_bucket(Bucket="there")
    name.fill("made-here")
    page.get_by_role("button", name="Create", exact=True).click()
    expect(page).to_have_url(re.compile("/console/buckets/made-here/objects$"))
    assert s3.get_bucket_versioning(Bucket="made-here")["Status"] == "Enabled"
    for key in ("a", "a", "b/ü +%<x>&\"'"):
        s3.put_object(Bucket="made-here", Key=key, Body=b"12345")
    s3.delete_object(Bucket="made-here", Key="a")
    s3.create_multipart_upload(Bucket="made-here", Key="open +")
    page.goto("/console/buckets?filter=made")
    row = page.get_by_role("row").filter(has_text="made-here")
    expect(row).to_contain_text("15 B")
    expect(row.get_by_text("versions", exact=True)).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(2)
    row.get_by_role("link", name="Overview of made-here").click()
    page.get_by_role("button", name="Delete…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("15 B in 1 object, 2 older versions, 1 delete marker, 1 unfinished upload")
    expect(dialog.get_by_role("button", name="Delete the bucket")).to_be_disabled()
    dialog.get_by_label("to go on").fill("made-here")
    root_tab.check_accessibility()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The bucket made-here is deleted.")).to_be_visible()
    assert "made-here" not in [one["Name"] for one in s3.list_buckets()["Buckets"]]


def test_locked_versions_stay(root_tab: Tab, s3: Any) -> None:
    s3.create_bucket(Bucket="kept", ObjectLockEnabledForBucket=True)
    held = s3.put_object(Bucket="kept", Key="held", Body=b"1", ObjectLockLegalHoldStatus="ON")["VersionId"]
    s3.put_object(Bucket="kept", Key="free", Body=b"1")
    page = root_tab.open("/console/buckets/kept")
    page.get_by_role("button", name="Empty…").click()
    page.get_by_label("to go on").fill("kept")
    page.keyboard.press("Enter")
    expect(page.get_by_text("1 version could not be removed.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_contain_text("held")
    assert [one["Key"] for one in s3.list_object_versions(Bucket="kept")["Versions"]] == ["held"]
    s3.put_object_legal_hold(Bucket="kept", Key="held", VersionId=held, LegalHold={"Status": "OFF"})
    s3.delete_object(Bucket="kept", Key="held", VersionId=held)
    page.get_by_role("button", name="Start again").click()
    expect(page.get_by_text("The bucket kept is empty.")).to_be_visible()


def test_a_move_says_how_far_it_is(root_tab: Tab, bucket: str) -> None:
    """Rows that are added meanwhile make it no more than 100 %."""
    move = {"moving": True, "store": "new", "source": "old", "rows": 1, "total_rows": 3, "bytes": 5, "stuck": 0}

    def show_moving(route: Route) -> None:
        route.fulfill(json={**route.fetch().json(), "store": "new", "moving_from": "old"})

    page = root_tab.page
    page.route(f"**/api/v1/buckets/{bucket}", show_moving)
    page.route(f"**/api/v1/buckets/{bucket}/move", lambda route: route.fulfill(json=move))
    root_tab.open(f"/console/buckets/{bucket}")
    expect(page.get_by_text("33 %: 1 of 3 rows")).to_be_visible()
    move["rows"] = 4
    expect(page.get_by_text("100 %: 4 of 3 rows")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")


def test_counting_a_bucket_moves_nothing(root_tab: Tab, bucket: str) -> None:
    """What is below the numbers keeps its place when they arrive."""
    page = root_tab.page
    uncounted = {"contents": None}
    page.route(f"**/api/v1/buckets/{bucket}", lambda route: route.fulfill(json={**route.fetch().json(), **uncounted}))
    root_tab.open(f"/console/buckets/{bucket}")
    expect(page.get_by_text("Counting what is in it")).to_be_visible()
    facts = page.get_by_role("heading", name="Facts")
    before = facts.bounding_box()
    uncounted.clear()
    expect(page.get_by_text("Counted ")).to_be_visible()
    assert facts.bounding_box() == before
    page.unroute_all(behavior="ignoreErrors")


def _type(page: Page, text: str) -> None:
    page.get_by_label("Policy (JSON)").fill(text)


def test_a_policy_is_checked_while_it_is_typed(root_tab: Tab, s3: Any, bucket: str) -> None:
    page = root_tab.open(f"/console/buckets/{bucket}/settings/policy")
    save = page.get_by_role("button", name="Save")
    _type(page, '{\n  "Version": oops\n}')
    expect(page.get_by_role("alert")).to_contain_text("Line 2")
    expect(save).to_be_disabled()
    page.get_by_role("button", name="Undo changes").click()
    page.get_by_role("button", name="Add from a template").click()
    page.get_by_role("menuitem", name="Public read").click()
    expect(page.get_by_role("alert")).to_contain_text("public access block")
    root_tab.check_accessibility()
    page.get_by_role("button", name="Undo changes").click()
    page.get_by_role("button", name="Add from a template").click()
    page.get_by_role("menuitem", name="Deny without TLS").click()
    expect(page.get_by_text("the console cannot change it any more")).to_be_visible()
    page.get_by_role("button", name="Undo changes").click()
    page.get_by_role("button", name="Add from a template").click()
    page.get_by_role("menuitem", name="Require encryption").click()
    save.click()
    expect(page.get_by_text("Policy: saved.")).to_be_visible()
    stored = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    assert stored["Statement"][0]["Sid"] == "RequireEncryption"
    s3.delete_bucket_policy(Bucket=bucket)  # in another window
    _type(page, json.dumps(stored, indent=1))
    save.click()
    expect(page.get_by_text("changed by somebody else")).to_be_visible()


def test_a_session_that_ends_takes_no_draft_with_it(root_tab: Tab, s3: Any, bucket: str) -> None:
    page = root_tab.open(f"/console/buckets/{bucket}/settings/tags")
    page.get_by_role("button", name="Add a tag").click()
    page.get_by_label("Key").fill("team")
    page.context.clear_cookies()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Your session ended")).to_be_visible()
    page.get_by_label("Access key").fill(ACCESS_KEY)
    page.get_by_label("Secret key").fill(SECRET_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Key", exact=True)).to_have_value("team")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Tags: saved.")).to_be_visible()
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == [{"Key": "team", "Value": ""}]


def test_a_bucket_that_is_gone_says_so(root_tab: Tab, s3: Any, bucket: str) -> None:
    page = root_tab.open(f"/console/buckets/{bucket}/settings/tags")
    page.get_by_role("button", name="Add a tag").click()
    page.get_by_label("Key").fill("team")
    s3.delete_bucket(Bucket=bucket)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("does not exist")).to_be_visible()
    page.evaluate("window.onbeforeunload = null")
    for path in ("", "/settings/tags"):
        page.goto(f"/console/buckets/{bucket}{path}")
        expect(page.get_by_text("There is no such bucket")).to_be_visible()


def test_a_user_sees_what_his_rights_allow(tab: Tab, s3: Any, bucket: str, gateway: Gateway) -> None:
    """Settings that may not be read are not shown, nor what may not be done."""
    allowed = ["s3:ListAllMyBuckets", "s3:ListBucket", "s3:GetBucketTagging"]
    statement = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam(gateway, "CreateUser", UserName="looker")
    iam(gateway, "PutUserPolicy", UserName="looker", PolicyName="p", PolicyDocument=policy)
    key = iam(gateway, "CreateAccessKey", UserName="looker")["AccessKey"]
    tab.sign_in(key["AccessKeyId"], key["SecretAccessKey"])
    page = tab.open(f"/console/buckets/{bucket}/settings")
    expect(page.get_by_role("link", name="Tags")).to_contain_text("none")
    expect(page.locator(".settings-list li")).to_have_count(1)
    page.goto(f"/console/buckets/{bucket}")
    expect(page.get_by_text("Unlimited.")).to_be_visible()
    expect(page.get_by_role("button", name="Set a quota")).to_have_count(0)
    expect(page.get_by_label("Move to")).to_have_count(0)
    page.goto(f"/console/buckets/{bucket}/settings/cors")
    expect(page.get_by_role("alert")).to_contain_text("AccessDenied")


def iam(gateway: Gateway, action: str, **parameters: str) -> dict[str, Any]:
    """Run an operation of IAM as the root account."""
    token = gateway.data / "admin-token"
    headers = {"authorization": f"Bearer {token.read_text().strip()}"}
    with httpx.Client(base_url=f"{gateway.admin}/api/v1", headers=headers) as admin:
        account = admin.get("/accounts").json()[0]["id"]
        answer = admin.post(f"/accounts/{account}/iam/{action}", json={"parameters": parameters})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
