"""Run the suites of other projects against this gateway and compare with the lists beside this file.

None of them is part of the project: give a directory with checkouts of theirs (`make strangers SUITES=DIR`), each under
the name of its repository; those that it lacks are left out. `passes/` has a file a suite with the tests that must
pass, `left_out/` one with the rest and why each does not. The name of a round stands before that of its test.

Exit code 1: a test that must pass did not; 2: a suite could not be built, or no outcome can be read.
"""

from __future__ import annotations

import argparse
import base64
import os
import secrets
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from xml.etree import ElementTree

from tests.strangers.suites import SUITES, Suite
from tests.support.environment import ROOT
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client
from tests.support.listed import read_list, report

HERE = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "strangers"
BUCKET = "strangers"
END_LINES = 20
"""Of what a suite printed, shown when no outcome can be read."""


class Broken(Exception):
    """A suite that could not be built, or of which no outcome can be read."""


def filled(values: dict[str, str], words: dict[str, str]) -> dict[str, str]:
    """Return the values with `words` put in."""
    return {name: value.format_map(words) for name, value in values.items()}


def certificate(place: Path) -> dict[str, str]:
    """Make a certificate for 127.0.0.1; returns the settings of a gateway that shows it."""
    chain, key = place / "certificate.pem", place / "key.pem"
    what = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-out", chain, "-keyout", key, *what]
    subprocess.run(made, check=True, capture_output=True)
    return {"SLUICE_TLS_CERT": str(chain), "SLUICE_TLS_KEY": str(key)}


def build(name: str, suite: Suite, checkout: Path) -> None:
    """Build the tests, outside the checkout. Raises Broken when that fails."""
    words = {"build": str(BUILD / name), "here": str(HERE)}
    Path(words["build"]).mkdir(parents=True, exist_ok=True)
    # the environment of a run names the gateway, which a build does not need
    usable = {key: value for key, value in suite.environment.items() if "{" not in value.replace("{build}", "")}
    command = [part.format_map(words) for part in suite.build]
    environment = {**os.environ, **filled(usable, words)}
    try:
        subprocess.run(command, cwd=checkout / suite.folder, env=environment, stdout=sys.stderr, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Broken(f"it could not be built: {error}") from error


def read_outcomes(suite: Suite, written: Path, printed: Path) -> dict[str, str]:
    """Outcome of each test by the report, or by what was printed. Raises Broken, with the end of that, without any."""
    try:
        found = suite.outcomes(written if written.exists() else printed)
    except ElementTree.ParseError:
        found = {}
    if not found:
        end = printed.read_text(errors="replace").splitlines()[-END_LINES:]
        raise Broken("\n  ".join(["no outcome of a test can be read; it printed last:", *end]))
    return found


def run_round(name: str, suite: Suite, checkout: Path, added: dict[str, str], logs: Path | None) -> dict[str, str]:
    """Outcome of each test of one round, on a gateway made for it. Raises Broken when it has none."""
    with tempfile.TemporaryDirectory(prefix="strangers-") as directory, ExitStack() as stack:
        place = Path(directory)
        (place / "data").mkdir()
        master = base64.b64encode(secrets.token_bytes(32)).decode()
        settings = filled(suite.settings, {"master": master})
        if suite.tls:
            settings |= certificate(place)
        gateway = stack.enter_context(Gateway(place / "data", env=settings))
        for key in suite.keys:
            gateway.run("key", "create", key)
        words = {
            "endpoint": gateway.endpoint,
            "address": gateway.endpoint.partition("://")[2],
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
            "bucket": BUCKET,
            "build": str(BUILD / name),
            "place": directory,
            "here": str(HERE),
            "certificate": str(place / "certificate.pem"),
        }
        if not suite.tls:
            s3 = client(gateway.endpoint)
            for bucket in (BUCKET, *suite.buckets, *suite.locked):
                s3.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=bucket in suite.locked)
        environment = {**os.environ, **filled({**suite.environment, **added}, words)}
        command = [part.format_map(words) for part in suite.command]
        printed = (logs or place) / f"{name}.log"
        with printed.open("ab") as log:
            start = log.tell()
            try:
                subprocess.run(
                    command, cwd=checkout / suite.folder, env=environment, stdout=log, stderr=log, timeout=suite.seconds
                )
            except subprocess.TimeoutExpired:
                print(f"{name}: ended after {suite.seconds:.0f} s", file=sys.stderr)
        (place / "printed").write_bytes(printed.read_bytes()[start:])
        return read_outcomes(suite, place / "report.xml", place / "printed")


def run_suite(name: str, checkout: Path, logs: Path | None) -> int:
    """Run all rounds of a suite and print how they went; returns the exit code. Raises Broken."""
    suite = SUITES[name]
    head = ""
    if suite.commit:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=checkout, capture_output=True, text=True).stdout.strip()
    print(f"{suite.repository} {head[:9]}", flush=True)
    if head != suite.commit:
        print(f"the lists are of its commit {suite.commit[:9]}: others have other tests")
    build(name, suite, checkout)
    found = {}
    for title, added in suite.rounds.items():
        outcomes = run_round(name, suite, checkout, added, logs)
        found |= {f"{title}/{test}" if title else test: text for test, text in outcomes.items()}
    must_pass, left_out = (read_list(HERE / kind / f"{name}.txt") for kind in ("passes", "left_out"))
    return report(found, must_pass, left_out, whole=True)


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="tests.strangers.run", description=__doc__)
    parser.add_argument("directory", type=Path, help="where the checkouts are")
    parser.add_argument("suites", nargs="*", help=f"all that are there when none is named: {', '.join(SUITES)}")
    parser.add_argument("--logs", type=Path, help="directory that keeps what the suites print")
    chosen = parser.parse_args()
    if unknown := set(chosen.suites) - set(SUITES):
        parser.error(f"no such suite: {', '.join(sorted(unknown))}")
    # those that come as packages would download them: only when they are named
    checkouts = {name: chosen.directory / name for name, suite in SUITES.items() if suite.commit or not chosen.suites}
    there = [name for name in chosen.suites or SUITES if name not in checkouts or checkouts[name].is_dir()]
    if not there:
        parser.error(f"{chosen.directory} has a checkout of none of: {', '.join(chosen.suites or SUITES)}")
    for name in sorted(set(chosen.suites or SUITES) - set(there)):
        print(f"no checkout of {SUITES[name].repository}" if SUITES[name].commit else f"{name}: only when it is named")
    if chosen.logs:
        chosen.logs.mkdir(parents=True, exist_ok=True)
    codes = set()
    for name in there:
        try:
            codes.add(run_suite(name, checkouts.get(name, BUILD / name).resolve(), chosen.logs))
        except Broken as broken:
            print(f"{name}: {broken}", file=sys.stderr)
            codes.add(2)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
