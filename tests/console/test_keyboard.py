"""Every page by keyboard alone: each control is reached, the focus is seen and never lost, and the work gets done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.keyboard import Keyboard
from tests.console.tab import Tab
from tests.console.test_buckets import iam
from tests.support.environment import SIZE
from tests.support.gateway import Gateway, client

POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
)
RULE = {"ID": "r", "Filter": {"Prefix": "x"}, "Status": "Enabled", "Expiration": {"Days": 3}}
SETTINGS = (
    "policy", "public-access", "ownership", "acl", "cors", "versioning", "object-lock", "encryption", "lifecycle",
    "tags", "notifications", "website", "logging", "inventory", "request-payment",
)  # fmt: skip
PAGES = {
    "overview": ["nowhere", "overview"],
    "buckets": ["buckets", "buckets/keyed", "buckets/keyed/settings"],
    "settings": [f"buckets/keyed/settings/{name}" for name in SETTINGS],
    "objects": [f"buckets/keyed/objects{rest}" for rest in ("", "?prefix=none", "?key=a.txt", "/uploads")],
    "versions": ["buckets/keyed/versions", "buckets/keyed/versions?key=a.txt"],
    "people": ["users", "users/kate", "groups", "groups/staff", "roles", "policies", "policies/reads", "keys"],
    "tools of people": ["temporary", "simulator", "connect", "accounts"],
    "stores": ["stores?store=default"],
    "load tests": ["load-tests", "load-tests/new?targets=default"],
    "operations": [f"operations/{name}" for name in ("requests", "jobs", "gateways", "settings", "audit")],
}
IS_LONG = SIZE == "soak"
long = pytest.mark.skipif(not IS_LONG, reason="for soak: it presses thousands of keys")
GLANCED = {room: pages[1 if room in ("overview", "people") else 0] for room, pages in PAGES.items()}
"""A page of each room."""


@pytest.fixture(scope="module")
def furnished(gateway: Gateway) -> None:
    """A bucket and people with something of everything."""
    s3 = client(gateway.endpoint)
    s3.create_bucket(Bucket="keyed", ObjectLockEnabledForBucket=True)
    for key in ("a.txt", "a.txt", "b.json", "dir/c.txt"):
        s3.put_object(Bucket="keyed", Key=key, Body=b"[1]", ContentType="text/plain")
    s3.create_multipart_upload(Bucket="keyed", Key="half")
    s3.put_bucket_lifecycle_configuration(Bucket="keyed", LifecycleConfiguration={"Rules": [RULE]})
    s3.put_bucket_tagging(Bucket="keyed", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    s3.close()
    iam(gateway, "CreateUser", UserName="kate")
    iam(gateway, "CreateAccessKey", UserName="kate")
    iam(gateway, "PutUserPolicy", UserName="kate", PolicyName="given", PolicyDocument=POLICY)
    iam(gateway, "CreateGroup", GroupName="staff")
    iam(gateway, "AddUserToGroup", GroupName="staff", UserName="kate")
    arn = iam(gateway, "CreatePolicy", PolicyName="reads", PolicyDocument=POLICY)["Policy"]["Arn"]
    iam(gateway, "AttachUserPolicy", UserName="kate", PolicyArn=arn)


@pytest.fixture
def keyboard(root_tab: Tab) -> Keyboard:
    """The keyboard of a tab of the root account."""
    return Keyboard(root_tab.page)


def address(room: str, page: str) -> str:
    return f"/console/{'people/' if 'people' in room else ''}{page}"


@pytest.mark.usefixtures("furnished")
def test_each_control_can_have_the_focus_and_shows_it(keyboard: Keyboard) -> None:
    """What takes a click is reached by Tab or arrows, looks different with the focus, and is not covered then."""
    found = {}
    for room, page in GLANCED.items():
        keyboard.open(address(room, page))
        found[page] = keyboard.walk() if page == "buckets" else keyboard.glance()
    assert {page: faults for page, faults in found.items() if faults} == {}


@long
@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("room", PAGES)
def test_tab_goes_around_each_page(keyboard: Keyboard, room: str) -> None:
    """The same on every page, by the keys themselves, forwards and backwards."""
    found = {}
    for page in PAGES[room]:
        keyboard.open(address(room, page))
        found[page] = [faults for key in ("Tab", "Shift+Tab") if (faults := keyboard.walk(key))]
    assert {page: faults for page, faults in found.items() if faults} == {}


@long
@pytest.mark.usefixtures("furnished")
@pytest.mark.parametrize("room", PAGES)
def test_what_a_button_opens_gives_the_focus_back(keyboard: Keyboard, room: str) -> None:
    """A dialog takes the focus, keeps Tab within, closes by Esc, and what opened it has the focus again."""
    keyboard.page.on("dialog", lambda dialog: dialog.accept())
    found = {}
    for page in PAGES[room]:
        path = address(room, page)
        keyboard.open(path)
        for name in keyboard.openers():
            found[f"{page}: {name}"] = list(keyboard.faults_of_button(path, name))
    assert found
    assert {place: faults for place, faults in found.items() if faults} == {}


def test_a_bucket_is_made_filled_and_an_object_brought_back(
    keyboard: Keyboard, root_tab: Tab, s3: Any, tmp_path: Path
) -> None:
    page = root_tab.open("/console/overview")
    keyboard.go("Buckets")
    expect(page.get_by_role("heading", name="Buckets", exact=True)).to_be_focused()
    keyboard.use(page.get_by_role("button", name="Create a bucket").first)
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    keyboard.type("by-keyboard")
    keyboard.use(page.get_by_label("Keep versions"), "Space")
    expect(page.get_by_role("dialog").get_by_role("button", name="Create")).to_be_enabled()  # it knows the stores
    keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/console/buckets/by-keyboard/objects$"))
    expect(page.get_by_text("This bucket is empty")).to_be_visible()
    (tmp_path / "one.txt").write_text("one")
    with page.expect_file_chooser() as chooser:
        keyboard.use(page.get_by_role("button", name="Upload files").first)
    chooser.value.set_files(tmp_path / "one.txt")
    expect(page.get_by_text("1 file uploaded")).to_be_visible()
    expect(page.get_by_role("grid", name="Objects in by-keyboard")).to_be_visible()
    assert keyboard.focused()
    keyboard.press("/", "Enter", "Space")
    keyboard.use(page.get_by_role("button", name="Delete", exact=True))
    keyboard.use(page.get_by_role("dialog").get_by_role("button", name="Delete 1"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    keyboard.use(page.get_by_role("button", name="Undo"))
    expect(page.get_by_text("1 object brought back")).to_be_visible()
    assert keyboard.focused()
    assert s3.head_object(Bucket="by-keyboard", Key="one.txt")["ContentLength"] == 3


def test_a_user_gets_a_key_and_loses_it_and_a_policy_is_tried(keyboard: Keyboard, root_tab: Tab) -> None:
    page = root_tab.open("/console/overview")
    keyboard.go("People")
    keyboard.use(page.get_by_role("button", name="Create user"))
    expect(page.get_by_label("User name")).to_be_focused()
    keyboard.type("keyed-user")
    keyboard.press("Enter")
    expect(page.get_by_role("heading", name="keyed-user")).to_be_focused()
    keyboard.use(page.get_by_role("button", name="Make key"))
    keyboard.use(page.get_by_label("I have kept the secret"), "Space")
    keyboard.use(page.get_by_role("button", name="Done"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Make key")).to_be_focused()
    keyboard.use(page.get_by_role("button", name=re.compile("^Actions of ")))
    expect(page.get_by_role("menuitem").first).to_be_focused()
    keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem").last).to_be_focused()
    keyboard.press("Enter")
    keyboard.use(page.get_by_role("dialog").get_by_role("button", name="Delete"))
    expect(page.get_by_text("The key is deleted.")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Actions of "))).to_have_count(0)
    assert keyboard.focused()
    keyboard.go("Simulator")
    for label, text in (("Who", "*"), ("Does what", "s3:GetObject"), ("Bucket", "keyed-bucket"), ("Key", "a")):
        keyboard.reach(page.get_by_label(label))
        keyboard.press("Control+a")
        keyboard.type(text)
    keyboard.press("Enter")
    expect(page.get_by_label("Answer").get_by_role("heading", name="Denied")).to_be_visible()
    assert keyboard.focused()


def test_a_job_rests_and_goes_on(keyboard: Keyboard, root_tab: Tab) -> None:
    page = root_tab.open("/console/operations/jobs")
    keyboard.use(page.get_by_role("button", name="Pause: Lifecycle rules"))
    resume = page.get_by_role("button", name="Resume: Lifecycle rules")
    expect(resume).to_be_visible()
    assert keyboard.focused()
    keyboard.use(resume)
    expect(page.get_by_role("button", name="Pause: Lifecycle rules")).to_be_visible()
    assert keyboard.focused()


@long
def test_a_load_test_is_started_and_cancelled(keyboard: Keyboard, root_tab: Tab) -> None:
    page = root_tab.open("/console/overview")
    keyboard.go("Load tests")
    keyboard.use(page.get_by_role("link", name=re.compile("Choose what to compare|New load test")).first)
    box = page.get_by_role("checkbox", name=re.compile("^default"))
    expect(box).to_be_enabled(timeout=60_000)
    keyboard.use(box, "Space")
    start = page.get_by_role("button", name="Start")
    expect(start).to_be_enabled(timeout=60_000)
    keyboard.use(start)
    expect(page.get_by_role("progressbar", name="Progress of the load test")).to_be_visible(timeout=60_000)
    keyboard.use(page.get_by_role("button", name="Cancel"))
    expect(page.get_by_role("button", name="Remove")).to_be_visible(timeout=60_000)
    assert keyboard.focused()
    keyboard.use(page.get_by_role("button", name="Remove"))
    keyboard.use(page.get_by_role("dialog").get_by_role("button", name="Remove"))
    expect(page).to_have_url(re.compile("/load-tests$"))
    assert keyboard.focused()
