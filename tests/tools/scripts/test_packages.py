"""Every package of the checkout is in the distribution, below `sluice_s3`, and nothing else."""

from __future__ import annotations

import subprocess
import sys

from tests.support.environment import ROOT

FOLDERS = ("app", "loadtests", "migrations", "storage_drivers")
PRINT_PACKAGES = """
import setuptools
setuptools.setup = lambda *, packages: print(*packages, sep="\\n")
import runpy
runpy.run_path("setup.py")
"""


def test_every_package_is_found() -> None:
    command = [sys.executable, "-c", PRINT_PACKAGES]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    modules = {path.relative_to(ROOT) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    expected = {".".join(("sluice_s3", *path.parent.parts)) for path in modules}
    # users import it: it has a short name, and only that one
    assert set(done.stdout.split()) == expected - {"sluice_s3.app.testing"} | {"sluice_s3.testing"}
