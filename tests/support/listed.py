"""Suites of others: the lists of what passes and what is left out, what a run printed, and how the two differ.

An outcome is `passed`, or what was wrong in one line. A list has a test a line, and after its name how it runs or why
it does not pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree import ElementTree

PASSED = "passed"


def read_list(path: Path) -> dict[str, str]:
    """Test names and what stands after each of them."""
    found = {}
    for line in path.read_text().splitlines():
        test, _, rest = line.strip().partition(" ")
        if test:
            found[test] = rest.strip()
    return found


def worst(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Outcomes by test: one that was reported twice passed when it did both times."""
    found: dict[str, str] = {}
    for name, text in pairs:
        if found.get(name, PASSED) == PASSED:
            found[name] = text
    return found


def junit_outcomes(report: Path) -> dict[str, str]:
    """What pytest wrote: a test passed when neither it nor its clean-up went wrong."""
    cases = ElementTree.parse(report).iter("testcase")
    return worst((case.get("name", "").replace(" ", "_"), _outcome(case)) for case in cases)


def java_outcomes(report: Path) -> dict[str, str]:
    """What JUnit wrote: classes inherit their tests, so that the name of the class is a part of theirs."""
    pairs = []
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("classname", "").rpartition(".")[2] + "." + case.get("name", "").removesuffix("()")
        pairs.append((name.replace(" ", "_"), _outcome(case)))
    return worst(pairs)


def _outcome(case: ElementTree.Element) -> str:
    bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
    return f"{bad[0].tag}: {(bad[0].get('message') or '').partition(chr(10))[0]}" if bad else PASSED


def go_outcomes(printed: Path) -> dict[str, str]:
    """What a Go test binary printed with `-test.v`; a test with subtests is left to these."""
    found = {}
    for line in printed.read_text(errors="replace").splitlines():
        result, _, rest = line.strip().removeprefix("--- ").partition(": ")
        if result in ("PASS", "FAIL", "SKIP") and line.strip().startswith("--- "):
            found[rest.partition(" ")[0]] = PASSED if result == "PASS" else result.lower()
    parents = {name.rpartition("/")[0] for name in found}
    return {name: text for name, text in found.items() if name not in parents}


def rust_outcomes(printed: Path) -> dict[str, str]:
    """What Rust's test harness printed."""
    found = {}
    for line in printed.read_text(errors="replace").splitlines():
        if line.startswith("test ") and " ... " in line:
            name, _, result = line.removeprefix("test ").partition(" ... ")
            found[name.partition(" - ")[0]] = PASSED if result == "ok" else result
    return found


def shell_outcomes(printed: Path) -> dict[str, str]:
    """What the shell functions of s3fs-fuse's tests printed, each after its name."""
    found = {}
    for line in printed.read_text(errors="replace").splitlines():
        name, _, result = line.partition(" ")
        if name.startswith("test_") and result in ("passed", "failed"):
            found[name] = result
    return found


def mint_outcomes(printed: Path) -> dict[str, str]:
    """What MinIO's clients print for each test: a line of JSON with its name and PASS, FAIL or NA."""
    return worst(_mint_lines(printed))


def _mint_lines(printed: Path) -> Iterator[tuple[str, str]]:
    for line in printed.read_text(errors="replace").splitlines():
        if not line.startswith("{"):
            continue
        said = json.loads(line)
        if (status := said.get("status")) is None:
            continue
        why = " ".join(str(said[part]) for part in ("alert", "message", "error") if part in said)
        yield said["name"].rpartition(": ")[2], PASSED if status == "PASS" else f"{status}: {why}".partition("\n")[0]


def failures(found: dict[str, str], must_pass: dict[str, str]) -> dict[str, str]:
    """The tests that must pass and did not, with what was wrong."""
    return {name: found.get(name, "did not run") for name in must_pass if found.get(name) != PASSED}


def report(found: dict[str, str], must_pass: dict[str, str], left_out: dict[str, str], *, whole: bool) -> int:
    """Print how the outcomes differ from the lists; returns the exit code."""
    failed = failures(found, must_pass)
    unlisted = sorted(found.keys() - must_pass.keys() - left_out.keys())
    newly = sorted(name for name in left_out if found.get(name) == PASSED)
    print(f"must pass: {len(must_pass) - len(failed)} of {len(must_pass)}; left out: {len(left_out)}")
    for title, names in (("left out, but passed", newly), ("in neither list", unlisted)):
        if names:
            print(f"{title} ({len(names)}):", *(f"  {name}: {found[name]}" for name in names), sep="\n")
    if whole and (gone := sorted((must_pass.keys() | left_out.keys()) - found.keys())):
        print(f"not in this suite ({len(gone)}):", *(f"  {name}" for name in gone), sep="\n")
    if failed:
        print(f"FAILED ({len(failed)}):", *(f"  {name}: {why}" for name, why in sorted(failed.items())), sep="\n")
    return 1 if failed else 0
