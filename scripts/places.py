"""Run the functional, crash and conformance tests on kinds of mounts, and write the table of what passed into docs.

Each suite gets a new mount of each kind (see `tests/support/places.py`); disks need root. The results are kept in
`tests/support/places.json`, where another run replaces only what it ran again; the table is made from that file. Exit
code 1: something that ran here failed, or with --check, the page's table is not the one of the file.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from scripts.generated_pages import put_table
from sluice_s3.loadtests.file_systems import PROGRAMS
from tests.support.environment import SIZE
from tests.support.places import PLACES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "tests" / "support" / "places.json"

OWN = ("damage", "fsspec", "moves", "stores", "tree", "tree_watch")
"""Functional tests that start gateways of their own, and lie elsewhere whatever the place is."""
FUNCTIONAL = "tests/integration/functional"
SUITES: dict[str, tuple[str, ...]] = {
    "functional": (FUNCTIONAL, *(f"--ignore={FUNCTIONAL}/test_{name}.py" for name in OWN)),
    "kill -9": ("tests/reliability/crash/test_kill.py",),
    "power cut": ("tests/reliability/crash/test_power_cut.py", "-k", "acknowledged"),
    "s3-tests": (),
}
"""Arguments of pytest; s3-tests has a runner of its own."""
NFS = ("nfs4.2", "nfs3")
PART = ("objects", "multipart", "copy", "listing", "races", "reclaim", "rewriting", "versioning")
"""Functional tests that write, read and remove bytes: those for file systems of other projects, which are many."""
IN_PART = f"those of {', '.join(PART[:-1])} and {PART[-1]}"
SERVER_POWER = "the power of the NFS server, which is another machine than the gateway's"
NO_POWER = "the process that serves the mount is killed in place of the power, and mounts again"
NOT_ON: dict[str, dict[str, str]] = {
    "kill -9": {"memory": "the objects are in the memory of the process that is killed"},
    "power cut": {
        "here": "the disk of the machine itself; `ext4` stands for it",
        "tmpfs": "nothing in it outlives power",
        "memory": "nothing in it outlives power",
        "rclone": "its fsync does nothing: a store there must be `relaxed`, which promises nothing for this",
        "zdbfs": "its fsync does nothing, so that nothing could be asked of it",
    },
}
"""Suites that do not depend on the place, with the reason."""
ABOUT = {
    **{key: {"functional": [IN_PART], "power cut": [NO_POWER]} for key in PROGRAMS},
    **{key: {"functional": [IN_PART], "power cut": [SERVER_POWER]} for key in NFS},
}
"""What the suites are on other projects' file systems, and on NFS as `make nfs` has it."""
SAMPLED = "a sample of the listed tests, evenly: the whole suite would have taken more than 15 minutes (`--every`)"


@dataclass
class Outcome:
    """The result of a suite on a place."""

    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Names of tests, and the first line of each failure."""
    skipped: dict[str, int] = field(default_factory=dict)
    """The number of skipped tests by reason."""
    size: str = SIZE
    seconds: int = 0
    day: str = ""

    @property
    def cell(self) -> str:
        """Return "passed / failed / skipped"."""
        failed = f"**{len(self.failed)}**" if self.failed else "0"
        return f"{self.passed} / {failed} / {sum(self.skipped.values())}"


def run(place: str, suite: str, s3tests: Path | None, processes: int, every: int) -> Outcome:
    """Run a suite on a place.

    A run that ends without a report counts as one failed test.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="sluice-places-") as directory:
        report = Path(directory) / "report"
        if suite == "s3-tests":
            command = ["-m", "tests.conformance.run", str(s3tests), "--json", str(report), "--every", str(every)]
        else:
            spread = ("-n", str(processes)) if suite == "functional" else ()
            # a slow mount must not fail a test
            options = ("-q", "-p", "no:cacheprovider", "--tb=short", "--timeout=1800", f"--junitxml={report}")
            command = ["-m", "pytest", *options, *spread, *tests_of(place, suite)]
        environment = {**os.environ, "SLUICE_TEST_PLACE": place}
        ended = subprocess.run(
            [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        outcome = read(report, suite)
        if ended.returncode:
            print(ended.stdout[-20000:], ended.stderr[-4000:], file=sys.stderr)
            if not outcome.failed:
                outcome.failed["the run itself"] = f"exit code {ended.returncode}"
    outcome.seconds = round(time.monotonic() - began)
    outcome.day = time.strftime("%Y-%m-%d", time.gmtime())
    return outcome


def tests_of(place: str, suite: str) -> tuple[str, ...]:
    """Return what pytest runs for a suite on a place."""
    if suite == "functional" and place in ABOUT:
        return tuple(f"{FUNCTIONAL}/test_{name}.py" for name in PART)
    return SUITES[suite]


def read(report: Path, suite: str) -> Outcome:
    """Read a runner's report; nothing passed if it wrote none."""
    if not report.exists():
        return Outcome(failed={"the run itself": "no report"})
    if suite == "s3-tests":
        found = json.loads(report.read_text())
        return Outcome(found["passed"], found["failed"], {SAMPLED: found["left"]} if found["left"] else {})
    outcome, skipped = Outcome(), Counter[str]()
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 our own pytest wrote it
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = next((child for child in case if child.tag in ("failure", "error")), None)
        if bad is not None:
            outcome.failed[name] = (bad.get("message") or bad.tag).partition("\n")[0]
        elif (skip := case.find("skipped")) is not None:
            skipped[(skip.get("message") or "").removeprefix("Skipped: ")] += 1
        else:
            outcome.passed += 1
    outcome.skipped = dict(skipped)
    return outcome


def load(path: Path = RESULTS) -> dict[str, dict[str, Outcome]]:
    """Load the results so far, by place and suite."""
    if not path.exists():
        return {}
    found: dict[str, dict[str, dict[str, Any]]] = json.loads(path.read_text())
    return {place: {suite: Outcome(**one) for suite, one in row.items()} for place, row in found.items()}


def keep(place: str, suite: str, outcome: Outcome, path: Path = RESULTS) -> None:
    """Store one result; several runs may do so at a time."""
    lock = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = load(path)
        found.setdefault(place, {})[suite] = outcome
        whole = {
            name: {one: asdict(found[name][one]) for one in SUITES if one in found[name]}
            for name in PLACES
            if name in found
        }
        path.write_text(json.dumps(whole, indent=1) + "\n")
    finally:
        os.close(lock)


def table(found: dict[str, dict[str, Outcome]]) -> str:
    """Render a line for each place in Markdown, and why tests were skipped below."""
    notes: dict[str, int] = {}

    def noted(text: str, reasons: list[str]) -> str:
        numbers = [notes.setdefault(reason, len(notes) + 1) for reason in reasons]
        return " ".join([text, *(f"[{number}]" for number in numbers)])

    lines = [f"| store on | {' | '.join(SUITES)} |", "|---" * (len(SUITES) + 1) + "|"]
    for place in PLACES:
        row = found.get(place, {})
        cells = []
        for suite in SUITES:
            if reason := NOT_ON.get(suite, {}).get(place):
                cells.append(noted("-", [reason]))
            elif suite in row:
                about = ABOUT.get(place, {}).get(suite, [])
                cells.append(noted(row[suite].cell, [*about, *row[suite].skipped]))
            else:
                cells.append("not run")
        lines.append(f"| {place} | {' | '.join(cells)} |")
    lines += ["", *(f"- [{number}] {reason}" for reason, number in notes.items())]
    ran = [one for row in found.values() for one in row.values()]
    if ran:
        days = sorted({one.day for one in ran})
        sizes = "/".join(sorted({one.size for one in ran}))
        minutes = round(sum(one.seconds for one in ran) / 60)
        lines += ["", f"Run on {' to '.join(dict.fromkeys((days[0], days[-1])))} at size {sizes}: {minutes} minutes."]
    return "\n".join(lines) + "\n"


def write_table(*, check: bool = False) -> int:
    """Put the table into its page, or check that it is there. Returns the exit code."""
    remedy = "python -m scripts.places --table"
    return put_table("tested-mounts", "places", "scripts/places.py", table(load()), check=check, remedy=remedy)


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="scripts.places", description=__doc__)
    parser.add_argument("places", nargs="*", help=f"kinds of places, all when none is named: {', '.join(PLACES)}")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; may be given again")
    parser.add_argument("--s3tests", type=Path, help="checkout of ceph/s3-tests; without it that suite is left out")
    parser.add_argument("--processes", type=int, default=2, help="of pytest, in the functional tests")
    parser.add_argument("--every", type=int, default=1, help="of s3-tests only every so many-th test, on slow mounts")
    parser.add_argument("--table", action="store_true", help="only write the table from what was found before")
    parser.add_argument("--check", action="store_true", help="only say whether the page has that table")
    chosen = parser.parse_args()
    if unknown := set(chosen.places) - PLACES.keys():
        parser.error(f"no such place: {', '.join(sorted(unknown))}")
    if chosen.table or chosen.check:
        return write_table(check=chosen.check)
    suites = [name for name in chosen.suite or SUITES if name != "s3-tests" or chosen.s3tests]
    good = True
    for place in chosen.places or PLACES:
        for suite in suites:
            if place in NOT_ON.get(suite, {}):
                continue
            outcome = run(place, suite, chosen.s3tests, chosen.processes, chosen.every)
            keep(place, suite, outcome)
            good = good and not outcome.failed
            print(f"{place}, {suite}: {outcome.cell} ({outcome.seconds} s)", flush=True)
            for name, why in outcome.failed.items():
                print(f"  {name}: {why}", flush=True)
    return write_table() or int(not good)


if __name__ == "__main__":
    sys.exit(main())
