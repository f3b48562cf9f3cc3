"""Print what CHANGELOG.md says of a release, and check that its tag, version and section agree."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


class NotReady(Exception):
    """The checkout cannot be released under that tag; the message says why."""


def notes(tag: str, version: str, changelog: str) -> str:
    """Return the section of a release. Raises NotReady."""
    if tag != f"v{version}":
        raise NotReady(f"the tag is {tag}, and app/__init__.py says {version}")
    section = re.search(
        rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise NotReady(f"CHANGELOG.md has no section `## {version} - YYYY-MM-DD`")
    if not section[1].strip():
        raise NotReady(f"CHANGELOG.md says nothing of {version}")
    return section[1].strip() + "\n"


def read_version() -> str:
    """Return the version of this checkout, without importing what it needs."""
    match = re.search(r'^__version__ = "(.+)"$', (ROOT / "app" / "__init__.py").read_text(), re.MULTILINE)
    assert match is not None
    return match[1]


def main() -> int:
    """Print the notes of the tag that is the only argument; 1 when the checkout is not that release."""
    try:
        sys.stdout.write(notes(sys.argv[1], read_version(), (ROOT / "CHANGELOG.md").read_text()))
    except NotReady as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
