"""The distribution's name, and what messages and documents say to install."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from tests.support.environment import ROOT

STRANGER = re.compile(r"pip install[^\n`]*[ '\"]sluice(?=[\[=<>~'\"\s`]|$)|\bsluice\[[a-z]+\]", re.M)
"""Another project on PyPI has the name `sluice`."""


def test_the_name_is_not_that_of_another_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == "sluice-s3"
    assert set(project["scripts"]) == {"sluice"}


def test_nothing_says_to_install_the_other_project() -> None:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--", ".", ":!tests"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    found = [
        f"{name}: {match[0]}"
        for name in names.split("\0")
        if name and Path(name).suffix in {"", ".md", ".py", ".sh", ".toml", ".yml", ".yaml", ".example"}
        for match in STRANGER.finditer((ROOT / name).read_text())
    ]
    assert found == []


def test_the_pattern_finds_the_other_project_alone() -> None:
    assert STRANGER.search("pip install 'sluice[loadtest]'")
    assert STRANGER.search("pip install -U sluice")
    assert not STRANGER.search("pip install 'sluice-s3[loadtest]'")
    assert not STRANGER.search("pip install '.[loadtest]' in sluice-s3")
