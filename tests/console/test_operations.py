"""The room Operations: requests live, jobs, gateways, settings and the audit log, as a person uses them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.tab import Tab
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway


def row(page: Page, text: str) -> Any:
    return page.get_by_role("row").filter(has_text=text)


def test_requests_appear_and_one_shows_its_phases(root_tab: Tab, s3: Any, bucket: str) -> None:
    """Requests come by themselves, a filter is part of the address, names are text, and Enter opens one."""
    page = root_tab.open(f"/console/operations/requests?bucket={bucket}")
    expect(page.get_by_text("Live, from this gateway.")).to_be_visible()
    page.wait_for_timeout(1200)  # the workers look for watchers once a second
    key = "<img src=x onerror=alert(1)>"
    s3.put_object(Bucket=bucket, Key=key, Body=b"bytes")
    s3.list_buckets()
    expect(row(page, "PutObject")).to_contain_text(f"{bucket}/{key}")
    expect(row(page, "ListBuckets")).to_have_count(0)
    page.get_by_role("grid").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("cell", name="commit", exact=True)).to_be_visible()
    expect(dialog.get_by_text(":root")).to_be_visible()
    root_tab.check_accessibility()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Pause").click()
    s3.get_object(Bucket=bucket, Key=key)
    expect(page.get_by_text(re.compile("Paused. 1 new request"))).to_be_visible()
    expect(row(page, "GetObject")).to_have_count(0)
    page.get_by_role("button", name="Go on").click()
    expect(row(page, "GetObject")).to_have_count(1)
    page.get_by_label("Status").select_option("error")
    expect(page).to_have_url(re.compile("status=error"))
    page.get_by_label("Request id").fill("AAAA")
    expect(page).to_have_url(re.compile("request=AAAA"))


def test_a_job_is_paused_resumed_and_run(root_tab: Tab) -> None:
    """The leader hears wishes, and the audit log has them with the state before and after."""
    page = root_tab.open("/console/operations/jobs")
    lifecycle = row(page, "Lifecycle rules")
    lifecycle.get_by_role("button", name="Pause").click()
    expect(lifecycle.get_by_text("Paused")).to_be_visible()
    page.reload()
    lifecycle.get_by_role("button", name="Resume").click()
    lifecycle.get_by_role("button", name="Run now").click()
    expect(lifecycle.get_by_role("time").nth(1)).to_be_visible()  # the last run, beside the next one
    row(page, "Dry run of a rebuild").get_by_role("button", name="Run now").click()
    report = page.get_by_role("region", name="Report: Dry run of a rebuild")
    expect(report).to_contain_text("a rebuild would restore", timeout=60_000)
    root_tab.check_accessibility()
    page.goto("/console/operations/audit?action=PauseJob")
    page.get_by_role("button", name="sluice:PauseJob").first.click()
    expect(page.get_by_label("Lines before and after the change")).to_contain_text('"lifecycle"')


def test_scrub_and_check_show_how_far_they_are_and_what_they_found(root_tab: Tab) -> None:
    """Both have a bar with their share; a finding leads to the card of its store."""
    jobs: dict[str, dict[str, Any]] = {
        "scrub:default": {"state": "running", "progress": [{"what": "Reading versions", "done": 130, "total": 400}]},
        "fsck": {"state": "running", "progress": [{"what": "Comparing rows and blobs", "done": 2000, "total": None}]},
    }
    jobs["scrub:default"]["findings"] = 3

    def answer(route: Route) -> None:
        found = route.fetch().json()
        route.fulfill(json=[{**job, **jobs.get(job["name"], {})} for job in found])

    root_tab.page.route("**/api/v1/jobs", answer)
    page = root_tab.open("/console/operations/jobs")
    scrub = row(page, "Scrub")
    expect(scrub).to_contain_text("Reading versions, 32 %")
    expect(scrub.get_by_role("progressbar")).to_have_attribute("value", "130")
    expect(row(page, "Check of index")).to_contain_text("Comparing rows and blobs, 2,000 so far")
    root_tab.check_accessibility()
    scrub.get_by_role("link", name="3 findings").click()
    expect(page).to_have_url(re.compile(r"/console/stores\?store=default"))
    page.unroute_all(behavior="ignoreErrors")


def test_the_audit_log_shows_filters_and_exports(root_tab: Tab, s3: Any, bucket: str) -> None:
    """A change of a bucket has who made it, from where, and what it was; JSON lines have the same."""
    for value in ("old", "new"):
        s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "team", "Value": value}]})
    page = root_tab.open(f"/console/operations/audit?resource={bucket}")
    page.get_by_role("button", name="s3:PutBucketTagging").first.click()
    expect(page.get_by_text("Changes are kept for 365 days")).to_be_visible()
    diff = page.get_by_label("Lines before and after the change")
    expect(diff.locator(".went")).to_contain_text('"team": "old"')
    expect(diff.locator(".came")).to_contain_text('"team": "new"')
    root_tab.check_accessibility()
    page.keyboard.press("Escape")
    with page.expect_download() as started:
        page.get_by_role("link", name="As JSON lines").click()
    lines = started.value.path().read_text().splitlines()
    assert [json.loads(line)["action"] for line in lines] == ["s3:PutBucketTagging"] * 2 + ["s3:CreateBucket"]
    page.keyboard.press("/")
    page.keyboard.type("Create")
    expect(page.get_by_role("button", name="s3:CreateBucket")).to_be_visible()
    expect(page.get_by_role("button", name="s3:PutBucketTagging")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_settings_and_gateways(open_tab: Callable[..., Tab], scheme: str) -> None:
    """Each setting says what gave it, on a phone as well, and no secret is on the page."""
    tab = open_tab(color_scheme=scheme, viewport={"width": 390, "height": 800})
    tab.sign_in()
    page = tab.open("/console/operations/settings?q=root_secret")
    setting = page.get_by_role("listitem").filter(has_text="root_secret_key")
    expect(setting).to_contain_text("**********")
    expect(page.get_by_role("main")).not_to_contain_text(SECRET_KEY)
    tab.check_accessibility()
    page.goto("/console/operations/gateways")
    expect(page.get_by_text("this one")).to_be_visible()
    expect(page.get_by_text("1 worker")).to_be_visible()
    tab.check_accessibility()
    page.goto("/console/operations/audit")
    expect(page.get_by_role("link", name="Audit log")).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_role("cell", name="Success").first).to_be_in_viewport(ratio=1)


def test_what_a_user_may_not_is_not_shown(open_tab: Callable[..., Tab], gateway: Gateway) -> None:
    """A user who may see jobs alone has that tab alone, and no button there."""
    keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
    iam: Any = boto3.client("iam", endpoint_url=gateway.endpoint, region_name="us-east-1", **keys)
    iam.create_user(UserName="watcher")
    policy = {"Statement": [{"Effect": "Allow", "Action": "sluice:ListJobs", "Resource": "*"}]}
    iam.put_user_policy(
        UserName="watcher", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17", **policy})
    )
    key = iam.create_access_key(UserName="watcher")["AccessKey"]
    tab = open_tab()
    tab.sign_in(key["AccessKeyId"], key["SecretAccessKey"])
    page = tab.open("/console/operations")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(page.get_by_role("navigation", name="Operations").get_by_role("link")).to_have_count(1)
    expect(row(page, "Scrub")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Pause|Run now"))).to_have_count(0)
    page.goto("/console/operations/audit")
    expect(page.get_by_text("you have no right to see it")).to_be_visible()
