"""The objects of a bucket in a browser: list, upload, preview, change, delete, download."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, Route, expect

from tests.console.tab import Tab

HOSTILE = "<img src=x onerror=alert(1)> & 'quotes' \u202e.txt"


LOSE_PARTS = """() => {
  const { open, send } = XMLHttpRequest.prototype;
  Object.assign(XMLHttpRequest.prototype, {
    open(method, url) { this.lost = /partNumber=[23]&/.test(url); open.call(this, method, url); },
    send(body) { this.lost ? setTimeout(() => this.onerror()) : send.call(this, body); },
  });
}"""
"""Until the next reload, the second part and the third of an upload do not arrive."""


def open_folder(tab: Tab, bucket: str, prefix: str = "", key: str = "") -> Page:
    """Open a folder's page, or an object in it."""
    pairs = {name: value for name, value in (("prefix", prefix), ("key", key)) if value}
    query = str(httpx.QueryParams(pairs))
    return tab.open(f"/console/buckets/{bucket}/objects" + (f"?{query}" if query else ""))


def keys(s3: Any, bucket: str) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def put(s3: Any, bucket: str, **objects: bytes) -> None:
    for name, body in objects.items():
        s3.put_object(Bucket=bucket, Key=name.replace("__", "/").replace("_", "."), Body=body)


def test_upload_a_folder_and_download_it(root_tab: Tab, bucket: str, s3: Any, tmp_path: Path) -> None:
    """The empty bucket teaches; files come whole, checked, also in parts; one that is there is asked about."""
    page = open_folder(root_tab, bucket)
    expect(page.get_by_text("This bucket is empty")).to_be_visible()
    (tmp_path / "album" / "sub").mkdir(parents=True)
    (tmp_path / "album" / "one.txt").write_text("one")
    (tmp_path / "album" / "sub" / "ä b.txt").write_text("two")
    page.get_by_label("Folder to upload").set_input_files(tmp_path / "album")
    expect(page.get_by_text("2 files uploaded")).to_be_visible()
    assert keys(s3, bucket) == ["album/one.txt", "album/sub/ä b.txt"]
    with (tmp_path / "large.bin").open("wb") as file:
        file.truncate(33 << 20)
    page.get_by_label("Files to upload").set_input_files(tmp_path / "large.bin")
    expect(page.get_by_text("3 files uploaded")).to_be_visible()
    head = s3.head_object(Bucket=bucket, Key="large.bin", ChecksumMode="ENABLED")
    assert head["ContentLength"] == 33 << 20
    assert head["ChecksumCRC32C"].endswith("-3")
    page.get_by_label("Files to upload").set_input_files(tmp_path / "large.bin")
    expect(page.get_by_text("There is an object of this name already")).to_be_visible()
    page.get_by_role("button", name="Skip 1").click()
    expect(page.get_by_text("3 files uploaded")).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_label("Select album/").click()
    page.get_by_role("button", name="Download zip").click()
    expect(page.get_by_text("2 objects")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("dialog").get_by_role("button", name="Download").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert archive.namelist() == ["album/one.txt", "album/sub/ä b.txt"]
    expect(page.get_by_text("All is packed and sent.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_contain_text("100 %: 2 of 2 objects")
    root_tab.check_accessibility()


def test_a_reload_goes_on_with_the_parts_that_are_there(root_tab: Tab, bucket: str, s3: Any, tmp_path: Path) -> None:
    """Its state survives; the file is chosen again; a changed file is refused."""
    page = open_folder(root_tab, bucket)
    file = tmp_path / "large.bin"
    with file.open("wb") as out:
        out.truncate(48 << 20)
    page.evaluate(LOSE_PARTS)
    with page.expect_response(lambda answer: answer.request.method == "PUT" and "partNumber=1&" in answer.url):
        page.get_by_label("Files to upload").set_input_files(file)
    expect(page.get_by_text("Trying again in")).to_be_visible()
    page.on("dialog", lambda dialog: dialog.accept())
    page.reload()
    expect(page.get_by_text("1 upload interrupted")).to_be_visible()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    page.get_by_label("Files to go on with").set_input_files(file)
    expect(page.get_by_text("1 file uploaded")).to_be_visible()
    assert len(sent) == 2
    assert s3.head_object(Bucket=bucket, Key="large.bin")["ContentLength"] == 48 << 20


def test_keyboard_and_address(root_tab: Tab, bucket: str, s3: Any) -> None:
    """Filter, open, select and go up without the pointer; the path is the address."""
    put(s3, bucket, a_txt=b"1", b_txt=b"2", dir__c_txt=b"3")
    page = open_folder(root_tab, bucket)
    page.evaluate("() => { Clipboard.prototype.writeText = async () => { throw new Error('denied'); }; }")
    page.get_by_role("button", name="Copy the S3 path").click()
    expect(page.get_by_role("button", name="Copied")).to_be_focused()  # without the clipboard's permission
    expect(page.get_by_role("row")).to_have_count(3)
    page.keyboard.press("/")
    page.keyboard.type("dir")
    expect(page.get_by_role("row")).to_have_count(1)
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="c.txt")).to_be_visible()
    expect(page).to_have_url(re.compile("prefix=dir%2F$"))
    page.get_by_role("grid").focus()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 row selected")).to_be_visible()
    root_tab.check_accessibility()
    page.keyboard.press("Escape")
    page.keyboard.press("Backspace")
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("grid").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_back()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_list_by_the_beginning_of_a_name(root_tab: Tab, bucket: str, s3: Any) -> None:
    """Where more can be loaded, the filter's link lists the folder's names that begin with it."""
    put(s3, bucket, dir__aa_txt=b"1", dir__ab_txt=b"2")

    def say_there_is_more(route: Route) -> None:
        if "continuation-token" not in route.request.url:
            answer = route.fetch()
            more = "<NextContinuationToken>next</NextContinuationToken></ListBucketResult>"
            route.fulfill(response=answer, body=answer.text().replace("</ListBucketResult>", more))

    root_tab.page.route(re.compile("list-type=2"), say_there_is_more)
    page = open_folder(root_tab, bucket, "dir/a")
    expect(page.get_by_role("row")).to_have_count(2)
    page.keyboard.press("/")
    page.keyboard.type("ab")
    page.get_by_role("link", name="List all names that begin with “ab”").click()
    expect(page).to_have_url(re.compile("prefix=dir%2Fab$"))
    expect(page.get_by_role("row")).to_have_count(1)


def test_hostile_names_and_contents_are_text(root_tab: Tab, bucket: str, s3: Any) -> None:
    """Keys, metadata, JSON, CSV, HTML and SVG do nothing in the console's page."""
    script = b"<script>document.title='broken'</script>"
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
    types = {HOSTILE: "text/plain", "x.html": "text/html", "x.csv": "text/csv", "x.svg": "image/svg+xml"}
    for key, kind in types.items():
        body = svg if kind.startswith("image") else b"a,b\n" + script + b",2\n"
        s3.put_object(Bucket=bucket, Key=key, Body=body, ContentType=kind, Metadata={"x": "<b onclick=alert(1)>"})
    page = open_folder(root_tab, bucket)
    page.on("dialog", lambda dialog: root_tab.faults.append(f"a script ran: {dialog.message}"))
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    for key in types:
        page.get_by_role("link", name=key).click()
        shown = page.get_by_role("img", name=key) if key == "x.svg" else page.get_by_text("document.title")
        expect(shown).to_be_visible()
        page.get_by_role("tab", name="Properties").click()
        expect(page.get_by_label("Value of metadata 1")).to_have_value("<b onclick=alert(1)>")
        page.keyboard.press("Escape")
    assert page.title().endswith("· Sluice")


def test_headers_metadata_tags_and_links(root_tab: Tab, bucket: str, s3: Any) -> None:
    """Each is changed and kept; a link works without signing in; the QR code is there."""
    put(s3, bucket, a_txt=b"hello")
    page = open_folder(root_tab, bucket, key="a.txt")
    page.get_by_role("tab", name="Properties").click()
    page.get_by_label("Cache-Control").fill("no-cache")
    page.get_by_role("button", name="Add metadata").click()
    page.get_by_label("Name of metadata 1").fill("team")
    page.get_by_label("Value of metadata 1").fill("ä")
    expect(page.get_by_text("ASCII characters only")).to_be_visible()
    page.get_by_label("Value of metadata 1").fill("ops")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Headers and metadata saved")).to_be_visible()
    head = s3.head_object(Bucket=bucket, Key="a.txt")
    assert (head["CacheControl"], head["Metadata"]) == ("no-cache", {"team": "ops"})
    page.get_by_role("tab", name="Tags").click()
    page.get_by_role("button", name="Add tag").click()
    page.get_by_label("Name of tag 1").fill("a")
    page.get_by_label("Value of tag 1").fill("b")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Tags saved")).to_be_visible()
    assert s3.get_object_tagging(Bucket=bucket, Key="a.txt")["TagSet"] == [{"Key": "a", "Value": "b"}]
    page.get_by_role("tab", name="Share").click()
    page.get_by_role("button", name="Make a link").click()
    link = page.get_by_label("Link", exact=True)
    expect(link).to_be_visible()
    assert httpx.get(link.input_value()).content == b"hello"
    page.get_by_role("button", name="Show as QR code").click()
    expect(page.get_by_label("QR code of the link")).to_be_visible()
    root_tab.check_accessibility()


def test_rename_move_delete_and_undo(root_tab: Tab, bucket: str, s3: Any) -> None:
    """A rename is one request; a folder moves; a delete says what it does, and is undone where versions are kept."""
    put(s3, bucket, a_txt=b"1", b_txt=b"2", dir__c_txt=b"3")
    page = open_folder(root_tab, bucket)
    page.get_by_label("Select a.txt").click()
    page.get_by_role("button", name="Rename or move").click()
    expect(page.get_by_label("Key")).to_have_value("a.txt")
    expect(page.get_by_text("It has this key already")).to_have_count(0)  # nobody typed anything
    page.get_by_label("Key").fill("b.txt")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    expect(page.get_by_text("There is an object at b.txt already")).to_be_visible()
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    assert keys(s3, bucket) == ["a.txt", "b.txt", "dir/c.txt"]
    page.get_by_label("Select dir/").click()
    page.get_by_role("button", name="Rename or move").click()
    page.get_by_label("Folder", exact=True).fill("new/place")
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    expect(page.get_by_text("1 object moved")).to_be_visible()
    assert keys(s3, bucket) == ["a.txt", "b.txt", "new/place/dir/c.txt"]
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    open_folder(root_tab, bucket)
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("grid").focus()
    page.keyboard.press("Control+a")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("you can undo this")).to_be_visible()
    root_tab.check_accessibility()
    page.get_by_role("button", name="Delete 3").click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("3 objects brought back")).to_be_visible()
    assert len(keys(s3, bucket)) == 3


def test_phone_in_the_dark_and_open_uploads(open_tab: Callable[..., Tab], bucket: str, s3: Any) -> None:
    """The list at phone width; an open upload is aborted."""
    tab = open_tab(color_scheme="dark", viewport={"width": 390, "height": 800})
    tab.sign_in()
    put(s3, bucket, a_txt=b"1")
    s3.create_multipart_upload(Bucket=bucket, Key="half <b>")
    page = open_folder(tab, bucket)
    page.get_by_label("Select a.txt").click()
    tab.check_accessibility()
    tab.open(f"/console/buckets/{bucket}/objects/uploads")
    page.get_by_role("button", name="Abort half <b>").click()
    page.get_by_role("button", name="Abort it").click()
    expect(page.get_by_text("No open uploads")).to_be_visible()
    tab.check_accessibility()
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
