"""Run ceph/s3-tests against this gateway and compare with the two lists beside this file.

The suite is not part of the project: give a checkout of it (`make s3tests S3TESTS=DIR`). `passes.txt` names the tests
that must pass, `left_out.txt` the rest of the portable subset and what each one needs. The portable subset is what the
suite marks neither as failing on AWS nor on its own server, and that needs neither bucket logging, nor a cloud tier,
nor time passing for a lifecycle rule. The tests of the last kind are in the lists too, and say how long days must be
for them: `short days` of a few seconds, or `real days`; they run apart. Bucket logging has lists and a run of its own
(`--logging`), with what the suite marks as failing on AWS: that is most of it, because AWS delivers when it likes.

Exit code 1: a test that must pass did not; 2: the run itself failed.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import secrets
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from configparser import RawConfigParser
from contextlib import ExitStack
from pathlib import Path

from tests.support.environment import ROOT
from tests.support.gateway import Gateway
from tests.support.listed import failures, junit_outcomes, read_list, report
from tests.support.places import Place, placed

NOTHING_CHOSEN = 5
"""Exit code of pytest."""
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
OF_LOGGING = "bucket_logging or bucket_logging_cleanup"
LOG_INTERVAL = "2.5"
"""Seconds after which lines are delivered: its tests wait for 5.5 s."""
ELSEWHERE = {"test_bucket_get_location": "eu-west-1"}
"""Tests that no server in us-east-1 can pass, because that region never names itself, and where they run instead."""
USERS = ("s3 main", "s3 alt", "s3 tenant", "iam", "iam root", "iam alt root")
IDENTITIES = ("s3tests/functional/test_iam.py", "s3tests/functional/test_sts.py")
NOT_OF_IDENTITIES = (*NOT_PORTABLE, "webidentity_test")
"""Federation is not built; see docs/reference/operations.md."""
MAY_ALL = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}'
DAYS = {"short days": 5, "real days": None}
"""What stands behind the name of a test for which days pass, and seconds of such a day (None: those of a day)."""
CLASSES = ("GLACIER_IR", "DEEP_ARCHIVE")
"""Storage classes that have a store where days pass."""
KEY = "testkey"
"""How the names of the two keys of SSE-KMS begin that the suite is told of."""

OPTIONS = {
    "access_key": "--access-key",
    "secret_key": "--secret-key",
    "user_id": "--id",
    "display_name": "--display-name",
    "email": "--email",
}
"""The option of `sluice user add` for each setting of a user's section."""


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


def add_user(gateway: Gateway, account: dict[str, str], user: dict[str, str]) -> None:
    """Make a user of an account, who may do all with buckets, and give him the keys of his own."""
    whose = (account["user_id"], "UserName=" + user["user_id"])
    gateway.run("iam", whose[0], "CreateUser", whose[1])
    gateway.run("iam", *whose[:1], "PutUserPolicy", whose[1], "PolicyName=all", f"PolicyDocument={MAY_ALL}")
    made = json.loads(gateway.run("iam", whose[0], "CreateAccessKey", whose[1]).stdout)["AccessKey"]
    user |= {"access_key": made["AccessKeyId"], "secret_key": made["SecretAccessKey"]}


def with_classes(place: Path, store: Place) -> dict[str, str]:
    """The environment of a gateway with a store of storage classes beside its own."""
    default = store.store or {"path": str(place / "data")}
    stores = {"default": default, "cold": {"path": str(place / "cold")}}
    env = {"SLUICE_STORES": json.dumps(stores), "SLUICE_STORAGE_CLASSES": ",".join(f"{name}=cold" for name in CLASSES)}
    return {"SLUICE_INDEX": f"sqlite:///{place}/data/index/sluice.db", **store.environment(place / "data"), **env}


def write_configuration(
    path: Path, gateway: Gateway, region: str, *, identities: bool, day: int | None, classes: bool
) -> None:
    """Make the accounts of one worker and write where it finds them and the gateway.

    For the tests of IAM accounts have numbers, as AWS's do, and the other account is a user of the account `iam`.
    """
    conf = RawConfigParser()
    conf["DEFAULT"] = {"host": "127.0.0.1", "port": str(gateway.port), "is_secure": "False", "ssl_verify": "False"}
    conf["fixtures"] = {"bucket prefix": f"{path.stem}-{{random}}-"}
    for section in reversed(USERS):
        numbered = identities and section.startswith("iam")
        user = {
            "access_key": secrets.token_hex(10).upper(),
            "secret_key": secrets.token_hex(20),
            "user_id": f"{secrets.randbelow(10**12):012d}" if numbered else secrets.token_hex(32),
            "display_name": f"{section} of {path.stem}",
            "email": f"{section.replace(' ', '-')}@{path.stem}.example.com",
        }
        if identities and section == "s3 alt":
            add_user(gateway, dict(conf["iam"]), user)
        else:
            gateway.run("user", "add", *(part for name, value in user.items() for part in (OPTIONS[name], value)))
        conf[section] = user
    conf["s3 tenant"]["tenant"] = "tenant"
    for number, option in enumerate(("kms_keyid", "kms_keyid2"), 1):
        conf["s3 main"][option] = f"arn:aws:kms:{region}:000000000000:key/{KEY}-{number}"
    conf["s3 main"]["api_name"] = "" if region == "us-east-1" else region
    if day is not None:
        conf["s3 main"]["lc_debug_interval"] = str(day)
    conf["s3 main"]["storage_classes"] = ", ".join(CLASSES) if classes else ""
    with path.open("w") as file:
        conf.write(file)


def run_suite(
    suite: Path,
    region: str,
    names: Iterable[str],
    options: argparse.Namespace,
    *,
    identities: bool = False,
    marks: Iterable[str] | None = None,
    day: int | None = None,
    classes: bool = False,
) -> dict[str, str]:
    """Outcome of each test: passed, or what was wrong in one line. Without `names` all of the portable subset runs.

    `identities`: those of IAM and STS instead. `day` is how many seconds a day of lifecycle rules lasts; with `classes`
    there are storage classes that have a store.
    """
    with tempfile.TemporaryDirectory(prefix="s3tests-") as directory:
        place = Path(directory)
        data = place / "data"
        data.mkdir()
        # the suite was written for buckets whose ACLs hold and of which nothing is blocked
        open_buckets = {"OBJECT_OWNERSHIP": "ObjectWriter", "PUBLIC_ACCESS_BLOCK": "false"}
        env = {} if options.defaults else {f"SLUICE_DEFAULT_{name}": value for name, value in open_buckets.items()}
        master = base64.b64encode(secrets.token_bytes(32)).decode()
        env |= {"SLUICE_SIGV2": "on", "SLUICE_REGION": region, "SLUICE_MASTER_KEY": master}
        if day is not None:
            env["SLUICE_LIFECYCLE_DAY_SECONDS"] = str(day)
        env["SLUICE_LOG_INTERVAL"] = LOG_INTERVAL
        with ExitStack() as stack:
            store = stack.enter_context(placed(place))
            given = None
            if classes:
                env, given = with_classes(place, store) | env, ()
            gateway = stack.enter_context(Gateway(data, place=store, env=env, given=given))
            for number in (1, 2):
                gateway.run("key", "create", f"{KEY}-{number}")
            for number in range(options.workers):
                how = {"identities": identities, "classes": classes}
                write_configuration(place / f"gw{number}.conf", gateway, region, day=day, **how)
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
            left = marks or (NOT_OF_IDENTITIES if identities else NOT_PORTABLE)
            chosen = OF_LOGGING if options.logging else " and ".join(f"not {mark}" for mark in left)
            command += ["-k", options.only, "-m", chosen]
            command += [f"--junitxml={place / 'report.xml'}", *(IDENTITIES if identities else FILES)]
            ended = subprocess.run(command, cwd=suite, env=environment, stdout=sys.stderr)
            if ended.returncode == NOTHING_CHOSEN:
                return {}
            if ended.returncode not in (0, 1):
                raise SystemExit(2)
            return junit_outcomes(place / "report.xml")


def _days(rest: str) -> str | None:
    """How long days are for a test, by what stands behind its name."""
    return next((days for days in DAYS if rest.startswith(days)), None)


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="tests/conformance/run", description=__doc__)
    parser.add_argument("suite", type=Path, help="checkout of ceph/s3-tests")
    parser.add_argument("--whole", action="store_true", help="run the whole portable subset, not only passes.txt")
    parser.add_argument("--identities", action="store_true", help="those of IAM and STS instead: identities_*.txt")
    parser.add_argument("--logging", action="store_true", help="those of bucket logging instead: logging_*.txt")
    parser.add_argument("--only", default="", help="run only the tests this pytest -k expression chooses")
    parser.add_argument("--workers", type=int, default=2, help="pytest processes, each with accounts of its own")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one test")
    parser.add_argument("--defaults", action="store_true", help="new buckets are as AWS makes them: only to count")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th test of passes.txt")
    parser.add_argument("--json", type=Path, help="file to write what passed and what failed to")
    chosen = parser.parse_args()
    suite = chosen.suite.resolve()
    if not (suite / FILES[0]).is_file():
        parser.error(f"{suite} is not a checkout of ceph/s3-tests")
    lists = "identities_" if chosen.identities else "logging_" if chosen.logging else ""
    must_pass, left_out = read_list(HERE / f"{lists}passes.txt"), read_list(HERE / f"{lists}left_out.txt")
    listed = len(must_pass)
    must_pass = dict(list(must_pass.items())[:: chosen.every])
    usual = {name: rest for name, rest in must_pass.items() if _days(rest) is None}
    names = () if chosen.whole or chosen.only else usual
    found = run_suite(suite, "us-east-1", names, chosen, identities=chosen.identities)
    if chosen.every == 1 and not lists:
        for days, seconds in DAYS.items():
            apart = [name for name, rest in must_pass.items() if _days(rest) == days]
            if chosen.whole:
                apart += [name for name, rest in left_out.items() if _days(rest) == days]
            found |= run_suite(suite, "us-east-1", apart, chosen, marks=("fails_on_rgw",), day=seconds, classes=True)
    else:
        must_pass = usual
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
