"""Run the functional, kill and conformance tests on kinds of mounts, and print the README's table of what passed.

Each kind is made anew for each suite (see `tests/places.py`). Root is needed for the disks. Exit code 1: something
failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.places import PLACES

ROOT = Path(__file__).parent.parent
OWN = "not test_damage and not test_stores and not test_health and not test_tree"
"""Functional tests that make gateways of their own, and lie elsewhere whatever the place is."""
COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


def pytest_outcome(place: str, *arguments: str) -> str:
    """`passed/all` of a suite on a place; `-` where it was skipped as a whole."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *arguments]
    ended = _run(place, command)
    counts: dict[str, int] = {}
    for number, kind in COUNTS.findall(ended.stdout.splitlines()[-1] if ended.stdout else ""):
        counts[kind.rstrip("s")] = int(number)
    if ended.returncode:
        print(ended.stdout[-6000:], file=sys.stderr)
    whole = sum(counts.get(kind, 0) for kind in ("passed", "failed", "error"))
    return f"{counts.get('passed', 0)}/{whole}" if whole else "-"


def conformance_outcome(place: str, suite: Path) -> str:
    """`passed/listed` of ceph/s3-tests."""
    ended = _run(place, [sys.executable, "-m", "tests.conformance.run", str(suite)])
    found = re.search(r"must pass: (\d+) of (\d+)", ended.stdout)
    if ended.returncode:
        print(ended.stdout[-6000:], file=sys.stderr)
    return f"{found[1]}/{found[2]}" if found else "did not run"


def _run(place: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SLUICE_TEST_PLACE": place}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def complete(outcome: str) -> bool:
    """Whether all that ran passed."""
    passed, _, whole = outcome.partition("/")
    return outcome == "-" or passed == whole


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="scripts.places", description=__doc__)
    parser.add_argument("places", nargs="*", help=f"kinds of places, all when none is named: {', '.join(PLACES)}")
    parser.add_argument("--s3tests", type=Path, help="checkout of ceph/s3-tests")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args()
    if unknown := set(chosen.places) - PLACES.keys():
        parser.error(f"no such place: {', '.join(sorted(unknown))}")
    good = True
    print("| store on | functional | kill -9 | s3-tests |\n|---|---|---|---|", flush=True)
    for place in chosen.places or PLACES:
        row = [pytest_outcome(place, "-n", str(chosen.processes), "tests/functional", "-k", OWN)]
        # what a process has in its memory goes with it
        row.append("-" if place == "memory" else pytest_outcome(place, "tests/crash/test_kill.py"))
        row.append(conformance_outcome(place, chosen.s3tests) if chosen.s3tests else "-")
        good = good and all(map(complete, row))
        print(f"| {place} | {' | '.join(row)} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
