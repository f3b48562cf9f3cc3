"""What plays a script once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sluice_s3.loadtests.mounts.mount import ROOT

GAVE_UP = 3
"""`loadtests.session.GAVE_UP`, which cannot be imported here: gevent would patch this process."""
SCENARIO = """
from sluice_s3.loadtests.users import ScriptUser

class Broken(ScriptUser):
    def script(self) -> None:
        raise LookupError("nothing is there")
"""


def test_a_script_that_fails_ends_the_run(tmp_path: Path) -> None:
    """Locust alone would log it and wait."""
    (tmp_path / "broken.py").write_text(SCENARIO)
    command = ["-m", "locust", "-f", str(tmp_path / "broken.py"), "--headless", "-u", "1", "--rows", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *command, "--direct", str(tmp_path / "data")],
        cwd=ROOT, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == GAVE_UP, done.stderr
    assert (tmp_path / "problem").read_text() == "LookupError: nothing is there"
