"""The settings that the page Connect offers are given to the tools that they are for."""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.console.tab import Tab
from tests.support.gateway import ACCESS_KEY, SECRET_KEY
from tests.support.waiting import eventually

KEY = "a/file.txt"
TOOLS = ("aws", "boto3", "rclone", "mc", "DuckDB", "Terraform", "s3fs")
MOUNT_SECONDS = 30.0
BIN = Path(sys.executable).parent


def read_snippets(page: Page) -> dict[str, list[str]]:
    """The texts of all tools, with the keys in place."""
    found = {}
    for tool in TOOLS:
        page.get_by_role("button", name=tool, exact=True).click()
        expect(page.get_by_role("heading", name=tool, exact=True)).to_be_visible()
        texts = page.locator("main pre").all_inner_texts()
        found[tool] = [text.replace("ACCESS_KEY", ACCESS_KEY).replace("SECRET_KEY", SECRET_KEY) for text in texts]
    return found


def test_the_tools_take_them(
    root_tab: Tab, s3: Any, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    s3.put_object(Bucket=bucket, Key=KEY, Body=b"12345")
    page = root_tab.open("/console/people/connect?bucket=x;touch%20/tmp/x")
    expect(page.get_by_text("No bucket can have this name")).to_be_visible()
    assert "touch" not in "".join(page.locator("main pre").all_inner_texts())
    page.get_by_label("Bucket").fill(bucket)
    root_tab.check_accessibility()
    snippets = read_snippets(page)
    assert all(bucket in "".join(texts) for texts in snippets.values())
    assert all(root_tab.gateway.port and str(root_tab.gateway.port) in "".join(texts) for texts in snippets.values())

    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RCLONE_", "TF_"))
    } | {"HOME": str(tmp_path), "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(command: str, given: str | None = None) -> str:
        ended = subprocess.run(
            shlex.split(command), env=environment, cwd=tmp_path, input=given, capture_output=True, text=True, timeout=60
        )
        assert ended.returncode == 0, (command, ended.stdout, ended.stderr)
        return ended.stdout

    def write(path: str, text: str, mode: int = 0o600) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode)
        file.write_text(text)

    config, credentials, command = snippets["aws"]
    write(".aws/config", config)
    write(".aws/credentials", credentials)
    assert "PRE a/" in run(command)
    write("list.py", snippets["boto3"][0])
    runpy.run_path(str(tmp_path / "list.py"))["s3"].close()  # in this process, which has boto3 already
    assert capsys.readouterr().out == f"{KEY} 5\n"
    config, command = snippets["rclone"]
    write(".config/rclone/rclone.conf", config)
    assert run(command).split() == ["5", KEY]
    if shutil.which("terraform"):  # it has its syntax, and the form of its formatter
        assert run("terraform fmt -no-color -", snippets["Terraform"][0]) == snippets["Terraform"][0]
    if shutil.which("s3fs") and os.geteuid() == 0 and os.path.exists("/dev/fuse"):
        look_through_s3fs(snippets["s3fs"], bucket, tmp_path, environment)


def look_through_s3fs(texts: list[str], bucket: str, home: Path, environment: dict[str, str]) -> None:
    """Mount the bucket by the command of the page, elsewhere and in the foreground."""
    password, shell = texts
    (home / ".passwd-s3fs").touch(0o600)
    (home / ".passwd-s3fs").write_text(password)
    place = home / "mounted"
    place.mkdir()
    command = shell.splitlines()[1].replace(f"/mnt/{bucket}", str(place)).replace("$HOME", str(home))
    with (home / "s3fs.log").open("w") as log:
        process = subprocess.Popen(
            [*shlex.split(command), "-f", "-o", f"tmpdir={home}"], env=environment, stdout=log, stderr=log
        )
    try:
        eventually(lambda: os.path.ismount(place) or process.poll() is not None, "s3fs mounts", MOUNT_SECONDS)
        if not os.path.ismount(place):
            pytest.fail((home / "s3fs.log").read_text())
        assert os.listdir(place) == ["a"]
    finally:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        process.wait(30)
