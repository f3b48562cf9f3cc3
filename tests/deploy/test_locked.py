"""The image's locked dependencies are what pyproject.toml asks for, each with hashes."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.environment import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FILES = {"requirements.txt": ("postgres",), "requirements-loadtest.txt": ("postgres", "loadtest")}
ENTRY = re.compile(r"^([\w.-]+)==(\S+)(?: ; .*?)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.M)


def locked(name: str) -> dict[str, str]:
    """The versions of a file by names; every entry has a hash."""
    text = (ROOT / "deploy" / name).read_text()
    found = {str(canonicalize_name(package)): version for package, version, _ in ENTRY.findall(text)}
    assert len(found) == len(re.findall(r"^\w", text, re.M)), "an entry without a hash, or twice"
    return found


@pytest.mark.parametrize("name", FILES)
def test_they_are_what_the_project_asks_for(name: str) -> None:
    versions = locked(name)
    extras = (PROJECT["optional-dependencies"][extra] for extra in FILES[name])
    for text in [*PROJECT["dependencies"], *(wanted for extra in extras for wanted in extra)]:
        wanted = Requirement(text)
        version = versions.get(canonicalize_name(wanted.name))
        assert version is not None, f"{wanted.name} is not locked: `make lock`"
        assert wanted.specifier.contains(version), f"{wanted}, but {version} is locked: `make lock`"


def test_both_images_have_the_same_versions() -> None:
    few, many = map(locked, FILES)
    assert few.items() <= many.items()
