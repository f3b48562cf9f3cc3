"""No bad input drops out silently: every number of the list has its tests, and no fewer than it had."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.support.environment import ROOT

FLOOR = {
    "a01": 2, "a02": 8, "a03": 3, "a04": 9, "a05": 17, "a06": 6, "a07": 5, "a08": 12, "a09": 4, "a10": 3,
    "a11": 15, "a12": 11, "a13": 9, "a14": 2, "a15": 1, "a16": 12, "a17": 8, "a18": 14, "a19": 10, "a20": 3,
    "b21": 10, "b22": 5, "b23": 2, "b24": 1, "b25": 12, "b26": 35, "b27": 1, "b28": 24, "b29": 1, "b30": 7,
    "b31": 4, "b32": 6,
    "c33": 47, "c34": 4, "c35": 17, "c36": 9, "c37": 15, "c38": 13, "c39": 19,
    "d40": 3, "d41": 15, "d42": 1, "d43": 13, "d44": 5, "d45": 12, "d46": 1, "d47": 10, "d48": 5, "d49": 8, "d50": 1,
    "e51": 11, "e52": 21, "e53": 1, "e54": 1, "e55": 1, "e56": 11, "e57": 34, "e58": 60, "e59": 1, "e60": 7,
    "e61": 27,
    "f62": 5, "f63": 2, "f64": 1, "f65": 1, "f66": 5, "f67": 5, "f68": 2, "f69": 17, "f72": 1, "f73": 5, "f74": 5,
    "f75": 49, "f76": 1,
    "g77": 32, "g78": 23, "g79": 22, "g80": 3, "g81": 8, "g82": 2, "g83": 10, "g84": 5, "g85": 34,
    "h86": 19, "h87": 6, "h88": 42, "h89": 43, "h90": 1, "h91": 39, "h92": 16, "h93": 7, "h94": 5,
    "i95": 14, "i96": 3, "i97": 12, "i98": 21,
}  # fmt: skip
"""Tests by number of the list of bad inputs: A header signatures, B streams, C presigned URLs, D forms, E names,
F rights, G HTTP, H documents, I operations. F62 and F63 have more in test_copy_rights.py of the functional tests, F70
and F71 in tests/unit/access."""


def collected() -> Counter[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:cacheprovider",
        str(Path(__file__).parent),
    ]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout
    return Counter(re.findall(r"::test_([a-i]\d\d)_", listed))


def test_every_number_has_its_tests() -> None:
    found = collected()
    missing = {number: (found[number], floor) for number, floor in FLOOR.items() if found[number] < floor}
    assert not missing, f"tests that dropped out (found, floor): {missing}"
    assert not found.keys() - FLOOR.keys(), "give these a floor"
