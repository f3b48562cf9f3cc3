"""Run ceph/s3-tests against this gateway and compare with the two lists beside this file.

The suite is not part of the project: give a checkout of it (`make s3tests S3TESTS=DIR`). `passes.txt` names the tests
that must pass, `left_out.txt` the rest of the portable subset and what each one needs. The portable subset is what the
suite marks neither as failing on AWS nor on its own server, and that needs neither bucket logging, nor a cloud tier,
nor time passing for a lifecycle rule. Exit code 1: a test that must pass did not; 2: the run itself failed.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from configparser import RawConfigParser
from pathlib import Path
from xml.etree import ElementTree

from tests.gateway import ROOT, Gateway
from tests.places import placed

HERE = Path(__file__).resolve().parent
FILES = ("s3tests/functional/test_s3.py", "s3tests/functional/test_headers.py")
NOT_PORTABLE = (
    "fails_on_aws",
    "fails_on_rgw",
    "bucket_logging",
    "bucket_logging_cleanup",
    "cloud_transition",
    "cloud_restore",
    "lifecycle_expiration",
    "lifecycle_transition",
)
ELSEWHERE = {"test_bucket_get_location": "eu-west-1"}
"""Tests that no server in us-east-1 can pass, because that region never names itself, and where they run instead."""
USERS = ("s3 main", "s3 alt", "s3 tenant")
UNKNOWN_USERS = ("iam", "iam root", "iam alt root")
"""Sections that the suite wants to read, of services that do not exist here: no account is made for them."""

OPTIONS = {
    "access_key": "--access-key",
    "secret_key": "--secret-key",
    "user_id": "--id",
    "display_name": "--display-name",
    "email": "--email",
}
"""The option of `sluice user add` for each setting of a user's section."""


def read_list(name: str) -> dict[str, str]:
    """Test names and what stands after each of them."""
    found = {}
    for line in (HERE / name).read_text().splitlines():
        test, _, rest = line.strip().partition(" ")
        if test:
            found[test] = rest.strip()
    return found


def suite_python(suite: Path) -> Path:
    """An interpreter with what the suite imports, made once."""
    home = ROOT / "build" / "s3tests-venv"
    python, made = home / "bin" / "python", home / "made"
    if not made.exists():
        venv.create(home, with_pip=True, clear=True)
        wanted = ["-r", str(suite / "requirements.txt"), "pytest-timeout", "pytest-xdist"]
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted], check=True)
        made.touch()
    return python


def write_configuration(path: Path, gateway: Gateway, region: str) -> None:
    """Make the accounts of one worker and write where it finds them and the gateway."""
    conf = RawConfigParser()
    conf["DEFAULT"] = {"host": "127.0.0.1", "port": str(gateway.port), "is_secure": "False", "ssl_verify": "False"}
    conf["fixtures"] = {"bucket prefix": f"{path.stem}-{{random}}-"}
    for section in USERS + UNKNOWN_USERS:
        user = {
            "access_key": secrets.token_hex(10).upper(),
            "secret_key": secrets.token_hex(20),
            "user_id": secrets.token_hex(32),
            "display_name": f"{section} of {path.stem}",
            "email": f"{section.replace(' ', '-')}@{path.stem}.example.com",
        }
        conf[section] = user
        if section in USERS:
            gateway.run("user", "add", *(part for name, value in user.items() for part in (OPTIONS[name], value)))
    conf["s3 tenant"]["tenant"] = "tenant"
    conf["s3 main"]["api_name"] = "" if region == "us-east-1" else region
    with path.open("w") as file:
        conf.write(file)


def run_suite(suite: Path, region: str, names: Iterable[str], options: argparse.Namespace) -> dict[str, str]:
    """Outcome of each test: passed, or what was wrong in one line. Without `names` all of the portable subset runs."""
    with tempfile.TemporaryDirectory(prefix="s3tests-") as directory:
        place = Path(directory)
        data = place / "data"
        data.mkdir()
        # the suite was written for buckets whose ACLs hold and of which nothing is blocked
        open_buckets = {"OBJECT_OWNERSHIP": "ObjectWriter", "PUBLIC_ACCESS_BLOCK": "false"}
        env = {f"SLUICE_DEFAULT_{name}": value for name, value in open_buckets.items()}
        env |= {"SLUICE_SIGV2": "on", "SLUICE_REGION": region}
        with placed(place) as store, Gateway(data, place=store, env=env) as gateway:
            for number in range(options.workers):
                write_configuration(place / f"gw{number}.conf", gateway, region)
            environment = {
                **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTEST_"))},
                "S3TEST_CONF": str(place / "gw0.conf"),
                "AWS_DEFAULT_REGION": region,
                "AWS_CONFIG_FILE": os.devnull,
                "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
                "PYTHONPATH": str(HERE),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            if wanted := "\n".join(names):
                (place / "names").write_text(wanted)
                environment["CHOSEN_TESTS"] = str(place / "names")
            command = [str(suite_python(suite)), "-m", "pytest", "-p", "worker_conf", "-p", "no:cacheprovider"]
            command += [
                "-q",
                "--tb=short",
                f"--timeout={options.timeout}",
                "-n",
                str(options.workers),
                "-k",
                options.only,
            ]
            command += ["-k", options.only, "-m", " and ".join(f"not {mark}" for mark in NOT_PORTABLE)]
            command += [f"--junitxml={place / 'report.xml'}", *FILES]
            ended = subprocess.run(command, cwd=suite, env=environment, stdout=sys.stderr)
            if ended.returncode not in (0, 1):
                raise SystemExit(2)
            return outcomes(place / "report.xml")


def outcomes(report: Path) -> dict[str, str]:
    """What pytest wrote: a test passed when neither it nor its clean-up went wrong."""
    found: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error", "skipped")]
        text = "passed"
        if bad:
            text = f"{bad[0].tag}: {(bad[0].get('message') or '').partition(chr(10))[0]}"
        name = case.get("name", "")
        if found.get(name, "passed") == "passed":
            found[name] = text
    return found


def failures(found: dict[str, str], must_pass: dict[str, str]) -> dict[str, str]:
    """The tests that must pass and did not, with what was wrong."""
    return {name: found.get(name, "did not run") for name in must_pass if found.get(name) != "passed"}


def report(found: dict[str, str], must_pass: dict[str, str], left_out: dict[str, str], *, whole: bool) -> int:
    """Print how the outcomes differ from the lists; returns the exit code."""
    failed = failures(found, must_pass)
    unlisted = sorted(found.keys() - must_pass.keys() - left_out.keys())
    newly = sorted(name for name in left_out if found.get(name) == "passed")
    print(f"must pass: {len(must_pass) - len(failed)} of {len(must_pass)}; left out: {len(left_out)}")
    for title, names in (("left out, but passed", newly), ("in neither list", unlisted)):
        if names:
            print(f"{title} ({len(names)}):", *(f"  {name}: {found[name]}" for name in names), sep="\n")
    if whole and (gone := sorted((must_pass.keys() | left_out.keys()) - found.keys())):
        print(f"not in this suite ({len(gone)}):", *(f"  {name}" for name in gone), sep="\n")
    if failed:
        print(f"FAILED ({len(failed)}):", *(f"  {name}: {why}" for name, why in sorted(failed.items())), sep="\n")
    return 1 if failed else 0


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="tests/conformance/run", description=__doc__)
    parser.add_argument("suite", type=Path, help="checkout of ceph/s3-tests")
    parser.add_argument("--whole", action="store_true", help="run the whole portable subset, not only passes.txt")
    parser.add_argument("--only", default="", help="run only the tests this pytest -k expression chooses")
    parser.add_argument("--workers", type=int, default=2, help="pytest processes, each with accounts of its own")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th test of passes.txt")
    parser.add_argument("--json", type=Path, help="file to write what passed and what failed to")
    chosen = parser.parse_args()
    suite = chosen.suite.resolve()
    if not (suite / FILES[0]).is_file():
        parser.error(f"{suite} is not a checkout of ceph/s3-tests")
    must_pass, left_out = read_list("passes.txt"), read_list("left_out.txt")
    listed = len(must_pass)
    must_pass = dict(list(must_pass.items())[:: chosen.every])
    names = () if chosen.whole or chosen.only else must_pass
    found = run_suite(suite, "us-east-1", names, chosen)
    for test, region in ELSEWHERE.items():
        if test in found:
            found |= run_suite(suite, region, [test], chosen)
    if chosen.only:
        must_pass = {name: why for name, why in must_pass.items() if name in found}
    if chosen.json:
        failed = failures(found, must_pass)
        left = listed - len(must_pass)
        chosen.json.write_text(json.dumps({"passed": len(must_pass) - len(failed), "failed": failed, "left": left}))
    return report(found, must_pass, left_out, whole=chosen.whole)


if __name__ == "__main__":
    sys.exit(main())
