"""Runs an earlier version of Sluice from a checkout of it, and keeps the data that one left as a fixture.

`python -m tests.reliability.upgrades.older CHECKOUT ARCHIVE` writes such a fixture.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from tests.reliability.upgrades.contents import write
from tests.support.gateway import Gateway, client

CHECKOUTS = [Path(one).resolve() for one in os.environ.get("SLUICE_TEST_OLDER", "").split()]
"""Checkouts of earlier versions, separated by spaces."""
JOURNAL_SECONDS = 4
"""After so long, the journals have all changes."""
PACKAGES = {
    "app": "app",
    "loadtests": "loadtests",
    "migrations": "migrations",
    "storage_drivers": "storage_drivers",
    "testing": "app/testing",
}
NEWER_SETTINGS = ("SLUICE_GATHER_CONNECTIONS",)
"""Settings of every gateway of the tests that an earlier version refuses."""
REFUSING_SINCE = "0011"
"""The first revision whose programs refuse newer tables with a line; those before it end with Alembic's error."""
START = """
import os
from {module} import {function} as run
for name in {settings!r}:
    os.environ.pop(name, None)
run()
"""


def older(checkout: Path, directory: Path, data: Path, env: dict[str, str] | None = None) -> Gateway:
    """Return a gateway of the version in `checkout`, which uses the libraries of this one.

    `directory` gets the links under which its packages are found. Raises ValueError for a directory that is none.
    """
    project = checkout / "pyproject.toml"
    entry = re.search(r'^sluice = "([\w.]+):(\w+)"', project.read_text(), re.MULTILINE) if project.exists() else None
    if entry is None:
        raise ValueError(f"{checkout} is no checkout of Sluice")
    linked = directory / "sluice_s3"
    linked.mkdir(parents=True, exist_ok=True)
    for name, folder in PACKAGES.items():
        if not (linked / name).is_symlink():
            (linked / name).symlink_to(checkout / folder)
    start = START.format(module=entry[1], function=entry[2], settings=NEWER_SETTINGS)
    return Gateway(
        data,
        command=(sys.executable, "-P", "-c", start),
        env={"PYTHONPATH": f"{directory}:{checkout}", "PYTHONSAFEPATH": "1", **(env or {})},
    )


def revision_of(checkout: Path) -> str:
    """Return the revision of the tables that a version makes."""
    return max(path.name[:4] for path in (checkout / "migrations/versions").glob("[0-9]*.py"))


def refusal_of(checkout: Path) -> str:
    """Return what a version says of tables newer than its own, when it ends."""
    return "newer version of Sluice" if revision_of(checkout) >= REFUSING_SINCE else "Can't locate revision"


def write_archive(checkout: Path, archive: Path) -> None:
    """Let an earlier version write `contents`, kill it, and keep its directory."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        gateway = older(checkout, directory / "packages", directory / "data").start()
        try:
            write(client(gateway.endpoint), revision_of(checkout))
            time.sleep(JOURNAL_SECONDS)
        finally:
            gateway.kill()
        with tarfile.open(archive, "w:xz", preset=9) as packed:
            packed.add(directory / "data", "data")


if __name__ == "__main__":
    write_archive(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
