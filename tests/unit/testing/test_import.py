"""pytest imports the plugin in every run of all who installed it."""

from __future__ import annotations

import json
import subprocess
import sys

CODE = """
import json, sys, pytest
before = set(sys.modules)
import sluice_s3.testing.plugin
print(json.dumps(sorted(set(sys.modules) - before)))
"""
MOST = 15
"""Modules in all, those of the standard library included; each takes about a millisecond."""


def test_the_plugin_imports_next_to_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert "sluice_s3.testing.plugin" in found
    assert not [name for name in found if name.partition(".")[0] in ("boto3", "botocore", "fastapi", "sqlalchemy")]
    own = {name for name in found if name.startswith("sluice_s3")}
    assert own - {name for name in own if name.startswith("sluice_s3.testing")} <= {
        "sluice_s3",
        "sluice_s3.storage_drivers",
        "sluice_s3.storage_drivers.fault_file",
    }
    assert len(found) <= MOST
