"""The notes of a release, and the workflow that publishes it."""

from __future__ import annotations

import re

import pytest
import yaml

from scripts.release_notes import NotReady, notes, read_version
from sluice_s3.app import __version__
from tests.support.environment import ROOT

CHANGELOG = """# Changelog

## Unreleased

### Added

- Later.

## 1.2.3 - 2026-11-23

### Added

- A thing.

## 1.2.2 - 2026-11-01

## 1.2.1 - 2026-10-01

- Old.
"""


def test_the_section_of_a_release() -> None:
    assert notes("v1.2.3", "1.2.3", CHANGELOG) == "### Added\n\n- A thing.\n"
    assert notes("v1.2.1", "1.2.1", CHANGELOG) == "- Old.\n"


@pytest.mark.parametrize(
    ("tag", "version", "reason"),
    [
        ("v1.2.4", "1.2.3", "the tag is v1.2.4"),
        ("1.2.3", "1.2.3", "the tag is 1.2.3"),
        ("v1.2.4", "1.2.4", "no section"),
        ("v1.2.2", "1.2.2", "says nothing"),
        ("v1.2", "1.2", "no section"),
    ],
)
def test_what_is_no_release(tag: str, version: str, reason: str) -> None:
    with pytest.raises(NotReady, match=reason):
        notes(tag, version, CHANGELOG)


def test_the_version_of_the_checkout() -> None:
    assert read_version() == __version__


def test_the_workflow_names_what_is_there() -> None:
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert {job: tuple(jobs[job].get("needs", ())) for job in jobs if job != "release"} == {
        "test": (),
        "package": tuple("test"),
        "image": tuple("test"),
    }
    assert jobs["release"]["needs"] == ["package", "image"]
    targets = {row["target"] for row in jobs["image"]["strategy"]["matrix"]["include"]}
    assert targets <= set(re.findall(r"^FROM \S+ AS (\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    for path in re.findall(r"(?<=run: )\.ci/\w+", text):
        assert (ROOT / path).is_file()
