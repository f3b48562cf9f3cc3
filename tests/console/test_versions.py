"""The room of versions: the time line of a key, what brings it back, locks, and why a version stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.console.tab import Tab
from tests.console.test_buckets import iam
from tests.support.gateway import Gateway

READER = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": {"Effect": "Allow", "Action": ["s3:List*", "s3:GetObjectVersion"], "Resource": "*"},
    }
)
KEY = "a//<img src=x onerror=document.title='owned'>.txt"


@pytest.fixture
def locked(s3: Any, bucket: str) -> str:
    """A bucket with versions and object lock."""
    name = f"{bucket}-locked"
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


def put(s3: Any, bucket: str, *bodies: str, key: str = KEY) -> list[str]:
    """Versions of a key, oldest first."""
    return [s3.put_object(Bucket=bucket, Key=key, Body=body.encode())["VersionId"] for body in bodies]


def open_timeline(tab: Tab, bucket: str, key: str = KEY, **query: str) -> Page:
    """The time line, with a version in detail."""
    page = tab.open(f"/console/buckets/{bucket}/versions?{urlencode({'key': key, **query})}")
    expect(page.get_by_label("The chosen version")).to_be_visible()
    return page


def test_what_was_deleted_comes_back(root_tab: Tab, s3: Any, locked: str) -> None:
    """The list has the key although it is deleted; its marker goes, and an older version comes on top."""
    put(s3, locked, "one", "two")
    s3.delete_object(Bucket=locked, Key=KEY)
    page = root_tab.open(f"/console/buckets/{locked}/versions?prefix=a%2F%2F")
    expect(page.get_by_text("Deleted", exact=True)).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_role("link", name=KEY.rpartition("/")[2]).click()
    page.get_by_role("button", name="Remove this marker").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove the marker").click()
    expect(page.get_by_text("The object is back.")).to_be_visible()
    assert s3.get_object(Bucket=locked, Key=KEY)["Body"].read() == b"two"
    rows = page.get_by_role("row")
    expect(rows).to_have_count(2)
    page.get_by_role("grid").press("ArrowDown")
    page.get_by_role("button", name="Restore", exact=True).click()
    expect(rows).to_have_count(3)
    assert s3.get_object(Bucket=locked, Key=KEY)["Body"].read() == b"one"
    root_tab.check_accessibility()
    assert page.title() != "owned"


def test_two_versions_are_compared(root_tab: Tab, s3: Any, locked: str) -> None:
    """Lines that differ, and tags; both layouts."""
    put(s3, locked, "same\nold\nend", key="k")
    s3.put_object(Bucket=locked, Key="k", Body=b"same\n<b>new</b>\nend", Tagging="stage=two")
    page = open_timeline(root_tab, locked, "k")
    grid = page.get_by_role("grid")
    for key in ("Space", "ArrowDown", "Space"):
        grid.press(key)
    page.get_by_role("button", name="Compare two").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("row", name="Tag stage")).to_be_visible()
    expect(dialog.locator(".old.text")).to_contain_text("removed: old")
    expect(dialog.locator(".new.text")).to_contain_text("added: <b>new</b>")
    root_tab.check_accessibility()
    dialog.get_by_role("button", name="Inline").click()
    expect(dialog.get_by_role("row", name="added")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_locks_are_set_and_explain_themselves(root_tab: Tab, s3: Any, locked: str) -> None:
    """Retention and hold are set; a deletion is refused and explained; the bypass is said plainly."""
    version, *_ = put(s3, locked, "kept", "newer", key="k")
    page = open_timeline(root_tab, locked, "k", version=version)
    page.get_by_role("button", name="Retention and hold").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Retention", exact=True).select_option("GOVERNANCE")
    dialog.get_by_label("Retain until").fill((datetime.now() + timedelta(days=9)).strftime("%Y-%m-%dT%H:%M"))
    dialog.get_by_label("Legal hold", exact=True).check()
    root_tab.check_accessibility()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("GOVERNANCE until")).to_be_visible()
    found = s3.get_object_retention(Bucket=locked, Key="k", VersionId=version)["Retention"]
    assert found["Mode"] == "GOVERNANCE"
    assert timedelta(days=8) < found["RetainUntilDate"] - datetime.now(UTC) < timedelta(days=10)
    page.get_by_role("button", name="Delete for good").click()
    dialog.get_by_label("Bypass its governance retention").check()
    dialog.get_by_role("button", name="Delete this version").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    dialog.get_by_role("button", name="Why can this not be deleted?").click()
    expect(dialog.get_by_text("A legal hold is on")).to_be_visible()
    expect(dialog.get_by_text("You have s3:BypassGovernanceRetention")).to_be_visible()
    root_tab.check_accessibility()
    s3.put_object_legal_hold(Bucket=locked, Key="k", VersionId=version, LegalHold={"Status": "OFF"})
    page.reload()
    page.get_by_role("button", name="Delete for good").click()
    dialog.get_by_label("Bypass its governance retention").check()
    dialog.get_by_role("button", name="Delete this version").click()
    expect(page.get_by_role("row")).to_have_count(1)


def test_a_policy_that_forbids_is_named(root_tab: Tab, s3: Any, locked: str) -> None:
    """The simulator says which statement of the bucket policy keeps a version."""
    put(s3, locked, "one", key="k")
    deny = {"Sid": "Keep", "Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObjectVersion"}
    statement = {**deny, "Resource": f"arn:aws:s3:::{locked}/*"}
    s3.put_bucket_policy(Bucket=locked, Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    page = open_timeline(root_tab, locked, "k")
    page.get_by_role("button", name="Why can this not be deleted?").click()
    expect(page.get_by_text("Statement 1 (“Keep”) of the bucket policy denies it.").first).to_be_visible()


def test_a_long_history_is_read_as_one_scrolls(open_tab: Callable[..., Tab], s3: Any, locked: str) -> None:
    """The first page is small, and the next one comes when its end is near; on a phone, in the dark."""
    put(s3, locked, *map(str, range(130)), key="k")
    tab = open_tab(color_scheme="dark", viewport={"width": 390, "height": 800})
    tab.sign_in()
    pages: list[str] = []
    tab.page.on("request", lambda request: pages.append(request.url) if "versions=" in request.url else None)
    page = open_timeline(tab, locked, "k")
    expect(page.get_by_text("100 versions loaded")).to_be_visible()
    assert len(pages) == 1
    tab.check_accessibility()
    page.get_by_role("grid").evaluate("one => { one.scrollTop = one.scrollHeight }")
    expect(page.get_by_text("130 versions.")).to_be_visible()
    assert len(pages) == 2


def test_an_older_version_is_found_by_its_address(root_tab: Tab, s3: Any, locked: str) -> None:
    """Pages are read until it is there."""
    oldest, *_ = put(s3, locked, *map(str, range(105)), key="k")
    page = open_timeline(root_tab, locked, "k", version=oldest)
    expect(page.get_by_label("The chosen version").get_by_text(oldest)).to_be_visible()


def test_the_editor_of_rules_shows_what_would_go(root_tab: Tab, s3: Any, locked: str) -> None:
    """The preview of the stored rules, at another time."""
    put(s3, locked, "one", "two!", key="logs/a")
    rule = {"ID": "old", "Filter": {"Prefix": "logs/"}, "Status": "Enabled"}
    expiring = {"Expiration": {"Days": 30}, "NoncurrentVersionExpiration": {"NoncurrentDays": 7}}
    s3.put_bucket_lifecycle_configuration(Bucket=locked, LifecycleConfiguration={"Rules": [rule | expiring]})
    page = root_tab.open(f"/console/buckets/{locked}/settings/lifecycle")
    page.get_by_role("button", name="What would go?").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("nothing would go")).to_be_visible()
    dialog.get_by_label("At", exact=True).select_option("30")
    expect(dialog.get_by_text("object is hidden behind a delete marker, 4 B")).to_be_visible()
    expect(dialog.get_by_text("noncurrent version is deleted for good, 3 B")).to_be_visible()
    dialog.get_by_role("button", name="Show keys").first.click()
    expect(dialog.get_by_role("cell", name="logs/a")).to_be_visible()
    root_tab.check_accessibility()


def test_a_user_without_rights_is_told_so(open_tab: Callable[..., Tab], s3: Any, locked: str, gateway: Gateway) -> None:
    """What S3 refuses is said as S3 says it; rights that cannot be asked about are not guessed."""
    put(s3, locked, "one", key="k")
    tab = open_tab()
    for action, parameters in (("CreateUser", {}), ("PutUserPolicy", {"PolicyName": "p", "PolicyDocument": READER})):
        iam(gateway, action, UserName="versions-reader", **parameters)
    key = iam(gateway, "CreateAccessKey", UserName="versions-reader")["AccessKey"]
    tab.sign_in(key["AccessKeyId"], key["SecretAccessKey"])
    page = open_timeline(tab, locked, "k")
    page.get_by_role("button", name="Why can this not be deleted?").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Your right to s3:DeleteObjectVersion is not known")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete for good").click()
    dialog.get_by_role("button", name="Delete this version").click()
    expect(dialog.get_by_role("alert")).to_contain_text("AccessDenied")
    assert s3.head_object(Bucket=locked, Key="k")["ContentLength"] == 3
