"""How an interpreter describes itself, and another one."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig

import pytest

from sluice_s3.app import interpreter
from sluice_s3.app.interpreter import describe_interpreter


@pytest.mark.parametrize(
    ("arguments", "prefix", "optimised"),
    [
        ("'--enable-optimizations' '--with-lto'", "/opt/python", True),
        ("'--enable-shared'", "/opt/python", False),
        ("'--enable-shared'", "/usr", True),
    ],
)
def test_the_build(monkeypatch: pytest.MonkeyPatch, arguments: str, prefix: str, optimised: bool) -> None:
    flags = {"CONFIG_ARGS": arguments, "PY_CFLAGS": "-O3"}
    monkeypatch.setattr(sysconfig, "get_config_var", flags.get)
    monkeypatch.setattr(sys, "base_prefix", prefix)
    found = describe_interpreter()
    assert (found.optimised, found.lto, found.flags) == (optimised, "lto" in arguments, "-O3")
    assert ("without --enable-optimizations" in found.advice) is not optimised


def test_as_a_program() -> None:
    printed = subprocess.run([sys.executable, "-I", interpreter.__file__], capture_output=True, check=True).stdout
    assert json.loads(printed) == describe_interpreter()._asdict()
