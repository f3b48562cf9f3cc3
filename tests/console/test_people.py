"""Users, keys, policies, roles and accounts, as people handle them in the console."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from playwright.sync_api import Page, expect

from tests.console.tab import Tab
from tests.support.gateway import client

_numbers = itertools.count(1)
ATTACK = '<img src=x onerror="document.title=1">'


@pytest.fixture
def name() -> str:
    """A name of this test's own."""
    return f"person-{next(_numbers)}"


def policy(*actions: str, resource: str = "*") -> str:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def make_user(iam: Any, name: str, document: str = "") -> tuple[str, str]:
    """A user with a key."""
    iam.create_user(UserName=name)
    if document:
        iam.put_user_policy(UserName=name, PolicyName="given", PolicyDocument=document)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    return made["AccessKeyId"], made["SecretAccessKey"]


def take_secret(page: Page) -> tuple[str, str]:
    """Read the key that the dialog shows, and say that it is kept."""
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("never again")).to_be_visible()
    key, secret = dialog.locator("dd code").all_inner_texts()[:2]
    expect(dialog.get_by_role("button", name="Done")).to_be_disabled()
    for _ in range(3):  # Chromium closes a dialog at the second, whatever its page says
        page.keyboard.press("Escape")
    expect(dialog.get_by_text(secret)).to_be_visible()
    dialog.get_by_label("I have kept the secret").check()
    dialog.get_by_role("button", name="Done").click()
    expect(page.get_by_text(secret)).to_have_count(0)
    return key, secret


def test_a_user_from_its_making_to_its_end(root_tab: Tab, iam: Any, bucket: str, name: str) -> None:
    page = root_tab.open("/console/people/users")
    page.get_by_role("button", name="Create user").click()
    page.get_by_label("User name").fill("no blanks")
    expect(page.get_by_role("alert")).to_contain_text("Letters, digits")
    page.get_by_label("User name").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=name)).to_be_visible()

    page.get_by_role("button", name="Write inline policy").click()
    page.get_by_label("Policy name").fill("work")
    page.get_by_label("Begin with").select_option(label="Read and write one bucket")
    text = page.get_by_label("Policy", exact=True)
    text.fill(text.input_value().replace("BUCKET", bucket))
    root_tab.check_accessibility()
    page.get_by_role("button", name="Save policy").click()
    expect(page.get_by_role("button", name="work", exact=True)).to_be_visible()

    page.get_by_role("button", name="Make key").click()
    old, secret = take_secret(page)
    client(root_tab.gateway.endpoint, old, secret).put_object(Bucket=bucket, Key="k", Body=b"")

    page.get_by_role("button", name=f"Actions of {old}").click()
    page.get_by_role("menuitem", name="Rotate…").click()
    page.get_by_role("button", name="Make the new key").click()
    new, new_secret = take_secret(page)
    page.get_by_role("button", name="Disable the old key").click()
    page.get_by_role("button", name="Delete the old key").wait_for()
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        client(root_tab.gateway.endpoint, old, secret).get_object(Bucket=bucket, Key="k")
    page.get_by_role("button", name="Delete the old key").click()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("button", name=f"Actions of {new}")).to_be_visible()
    expect(page.get_by_text(old)).to_have_count(0)
    client(root_tab.gateway.endpoint, new, new_secret).get_object(Bucket=bucket, Key="k")
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, history.state, document.cookie])")
    assert secret not in kept
    assert new_secret not in kept

    page.get_by_role("button", name="Delete user").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(new)).to_be_visible()
    expect(dialog.get_by_text("work")).to_be_visible()
    expect(dialog.get_by_role("button", name="Delete user")).to_be_disabled()
    dialog.get_by_label(f"Type {name} to go on").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Users", exact=True)).to_be_visible()
    assert name not in [user["UserName"] for user in iam.list_users()["Users"]]


def test_a_policy_is_checked_as_one_types_and_keeps_versions(root_tab: Tab, iam: Any, name: str) -> None:
    page = root_tab.open("/console/people/policies")
    page.get_by_role("button", name="Create policy").click()
    page.get_by_label("Policy name").fill(name)
    page.get_by_label("Description").fill(ATTACK)
    text, create = (
        page.get_by_label("Policy", exact=True),
        page.get_by_role("dialog").get_by_role("button", name="Create policy"),
    )
    for wrong, told in (
        ('{"Version": "2012-10-17",}', "Line 1, column 26: a name"),
        ('{"Statement": [{}', "Line 1, column 18: a comma or ] is"),
        ('{\n  "Version": }', "Line 2, column 14: a value is expected"),
        (policy("s3:GetObject").replace("Allow", "Maybe"), "effect"),
        (policy("s3:GetObject", resource="bucket"), "Resource"),
    ):
        text.fill(wrong)
        expect(page.get_by_role("alert")).to_contain_text(told, ignore_case=True)
        expect(create).to_be_disabled()
    text.fill(policy("s3:GetObject"))
    expect(page.get_by_role("alert")).to_have_count(0)
    create.click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text(ATTACK)).to_be_visible()
    assert page.locator("main img").count() == 0
    page.get_by_label("Policy (version v1)").fill(policy("s3:PutObject"))
    page.get_by_role("button", name="Save as new version").click()
    expect(page.get_by_label("Policy (version v2)")).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_role("button", name="Set as default").click()
    expect(page.get_by_label("Policy (version v1)")).to_have_value(
        json.dumps(json.loads(policy("s3:GetObject")), indent=2)
    )
    page.get_by_role("button", name="Delete policy").click()
    page.get_by_label(f"Type {name} to go on").fill(name)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Policies", exact=True)).to_be_visible()
    assert name not in [one["PolicyName"] for one in iam.list_policies(Scope="Local")["Policies"]]


def test_temporary_keys_of_a_role(open_tab: Callable[..., Tab], iam: Any, bucket: str, name: str) -> None:
    """A user assumes a role, limited by a policy, and the role's last use shows."""
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=document)["Role"]
    iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=policy("s3:*"))
    tab = open_tab()
    tab.sign_in(*make_user(iam, name, policy("sts:AssumeRole")))
    page = tab.open("/console/people/temporary")
    page.get_by_label("ARN of the role").fill(role["Arn"])
    page.get_by_label("Limit them by a policy").check()
    page.get_by_label("Session policy").fill(policy("s3:PutObject"))
    tab.check_accessibility()
    with page.expect_download() as download:
        page.get_by_role("button", name="Make credentials").last.click()
        page.get_by_role("button", name="Download as credentials file").click()
    lines = dict(line.split(" = ") for line in Path(download.value.path()).read_text().splitlines()[1:])
    assert (lines["endpoint_url"], lines["region"]) == (tab.gateway.endpoint, "us-east-1")
    keys = lines["aws_access_key_id"], lines["aws_secret_access_key"], lines["aws_session_token"]
    s3 = boto3.client("s3", "us-east-1", endpoint_url=tab.gateway.endpoint, aws_access_key_id=keys[0],
                      aws_secret_access_key=keys[1], aws_session_token=keys[2])  # fmt: skip
    s3.put_object(Bucket=bucket, Key="k")
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.get_object(Bucket=bucket, Key="k")
    s3.close()


def test_what_a_user_may_not_do_is_not_shown(open_tab: Callable[..., Tab], iam: Any, name: str) -> None:
    own = policy("iam:GetUser", "iam:*AccessKey*", resource="arn:aws:iam::*:user/${aws:username}")
    key, secret = make_user(iam, name, own)
    tab = open_tab(viewport={"width": 390, "height": 800}, color_scheme="dark")
    tab.sign_in(key, secret)
    page = tab.open("/console/people")
    expect(page.get_by_role("navigation", name="People").get_by_role("link")).to_have_text(
        ["My access keys", "Temporary credentials", "Connect"]
    )
    expect(page.get_by_text(key)).to_be_visible()
    expect(page.get_by_text("Last used:")).to_be_visible()
    tab.check_accessibility()
    page.goto("/console/people/users")
    expect(page.get_by_text("No such page")).to_be_visible()
    page.goto(f"/console/people/users/{name}")
    expect(page.get_by_role("button", name="Make key")).to_be_visible()
    assert page.get_by_role("button", name="Delete user").count() == 0
    assert page.get_by_role("button", name="Write inline policy").count() == 0
    refused = page.evaluate(
        """async () => {
            const { csrf } = await (await fetch("/api/v1/session")).json();
            const headers = { "content-type": "application/json", "x-sluice-csrf": csrf };
            const ask = async (action, parameters) => {
                const body = JSON.stringify({ action, parameters });
                return (await fetch("/api/v1/iam", { method: "POST", headers, body })).status;
            };
            return [await ask("ListUsers", {}), await ask("CreateUser", { UserName: "mallory" })];
        }"""
    )
    assert refused == [403, 403]


def test_accounts(root_tab: Tab, name: str) -> None:
    page = root_tab.open("/console/people/accounts")
    page.get_by_role("button", name="Create account").click()
    page.get_by_label("Name", exact=True).fill(f"{name} {ATTACK}")
    page.keyboard.press("Enter")
    key, secret = take_secret(page)
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert page.locator("main img").count() == 0
    s3 = client(root_tab.gateway.endpoint, key, secret)
    assert s3.list_buckets()["Buckets"] == []
    page.get_by_role("button", name="Disable account").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable account").click()
    expect(page.get_by_role("button", name="Enable account")).to_be_visible()
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        s3.list_buckets()
    root_tab.check_accessibility()
    page.get_by_role("button", name="Delete account").click()
    page.get_by_label("to go on").fill(f"{name} {ATTACK}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Accounts", exact=True)).to_be_visible()
    expect(page.get_by_text(name)).to_have_count(0)
