"""The page of the policy simulator."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import expect

from tests.console.tab import Tab


def test_the_deciding_statement_is_shown(root_tab: Tab, s3: Any, bucket: str) -> None:
    """A question by the address, another by the form, and one with a condition."""
    home = {"Sid": "Home", "Effect": "Allow", "Principal": "*", "Action": "s3:GetObject"}
    inside = {"Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, "Resource": f"arn:aws:s3:::{bucket}/*"}
    s3.delete_public_access_block(Bucket=bucket)
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [home | inside]}))
    question = {"principal": "*", "action": "s3:GetObject", "bucket": bucket, "key": "<b>a"}
    page = root_tab.open(f"/console/people/simulator?{urlencode(question)}")
    answer = page.get_by_label("Answer")
    expect(answer.get_by_role("heading", name="Denied")).to_be_visible()
    answer.get_by_text("Statement 1 “Home” does not apply (condition)").click()
    expect(answer.get_by_text("IpAddress on aws:sourceip wants 10.0.0.0/8; it was 127.0.0.1.")).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_role("button", name="Add a condition").click()
    page.get_by_label("Condition key 1").fill("aws:SourceIp")
    page.get_by_label("Value 1").fill("10.1.2.3")
    page.get_by_role("button", name="Simulate").click()
    expect(answer.get_by_role("heading", name="Allowed")).to_be_visible()
    expect(answer.get_by_text("Allow: statement 1 “Home” of the bucket policy")).to_be_visible()
    page.get_by_label("Does what").fill("s3:PutObject")
    page.get_by_role("button", name="Simulate").click()
    expect(answer.get_by_role("heading", name="Denied")).to_be_visible()
    assert "PutObject" in page.url


def test_a_draft_is_tried_without_being_stored(root_tab: Tab, s3: Any, bucket: str) -> None:
    """In place of the bucket's policy; what is no policy is said."""
    page = root_tab.open("/console/people/simulator")
    page.get_by_label("Who").fill("*")
    page.get_by_label("Bucket").fill(bucket)
    page.get_by_label("Key").fill("a")
    page.get_by_role("button", name="Try with another policy").click()
    page.get_by_label("How it counts").select_option("bucket")
    page.get_by_role("button", name="Simulate").click()
    answer = page.get_by_label("Answer")
    expect(answer.get_by_text("RestrictPublicBuckets ignores public policies")).to_be_visible()
    expect(answer.get_by_text("S3 refuses to store this policy")).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_label("Policy", exact=True).fill('{"Version": "2012-10-17"}')
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("The draft is no valid policy: Missing required field Statement")).to_be_visible()


def test_the_editor_of_a_policy_asks_with_its_draft(root_tab: Tab, s3: Any, bucket: str) -> None:
    """The answer is that of the text in the editor."""
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    page = root_tab.open(f"/console/buckets/{bucket}/settings/policy")
    page.get_by_label("Policy (JSON)").fill(json.dumps({"Version": "2012-10-17", "Statement": [deny]}))
    page.get_by_role("button", name="Try what it allows").click()
    page.get_by_label("Key").fill("a")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("Statement 1 of the bucket policy denies it.")).to_be_visible()
    root_tab.check_accessibility()
