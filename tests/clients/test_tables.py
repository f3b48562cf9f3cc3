"""Whoever keeps a table, or a state, on S3 relies on conditional writes: many commit at once, and no commit is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.clients

TABLES = Path(__file__).with_name("tables.py")
WRITERS, COMMITS = 4, 4
TURNS = 6
ROWS = sorted((writer, number) for writer in range(WRITERS) for number in range(COMMITS))


def tables(environment: dict[str, str], *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(TABLES), *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def said(process: subprocess.Popen[str]) -> Any:
    out, error = process.communicate(timeout=200)
    assert process.returncode == 0, error
    return json.loads(out) if out.strip() else None


def race(environment: dict[str, str], what: str, where: str) -> None:
    """All writers at once."""
    running = [tables(environment, what, where, writer, COMMITS) for writer in range(WRITERS)]
    for process in running:
        said(process)


def found(rows: list[dict[str, int]]) -> list[tuple[int, int]]:
    return sorted((one["writer"], one["number"]) for one in rows)


def test_commits_of_delta(environment: dict[str, str], s3: Any, bucket: str) -> None:
    where = f"s3://{bucket}/table"
    said(tables(environment, "delta", where, WRITERS, 1))  # makes the table
    race(environment, "delta", where)
    version, rows = said(tables(environment, "delta-rows", where))
    assert version == WRITERS * COMMITS
    assert found(rows) == [*ROWS, (WRITERS, 0)]
    log = s3.list_objects_v2(Bucket=bucket, Prefix="table/_delta_log/0")["Contents"]
    entries = [one["Key"].rpartition("/")[2] for one in log if one["Key"].endswith(".json")]
    assert entries == [f"{number:020d}.json" for number in range(version + 1)]


def test_commits_of_iceberg(environment: dict[str, str], s3: Any, bucket: str, tmp_path: Path) -> None:
    where = f"sqlite:///{tmp_path}/catalog.db|s3://{bucket}/warehouse"
    said(tables(environment, "iceberg-make", where))
    race(environment, "iceberg", where)
    snapshots, rows = said(tables(environment, "iceberg-rows", where))
    assert snapshots == WRITERS * COMMITS
    assert found(rows) == ROWS


def locked(s3: Any, bucket: str, who: int) -> bool:
    """Whether the lock is ours now."""
    try:
        s3.put_object(Bucket=bucket, Key="terraform.tfstate.tflock", Body=json.dumps({"ID": f"{who}"}), IfNoneMatch="*")
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("PreconditionFailed", "ConditionalRequestConflict"):
            raise
        return False
    return True


def test_a_state_that_is_locked_by_a_file(gateway: Gateway, s3: Any, bucket: str) -> None:
    """As Terraform's `use_lockfile`: a lock is a PUT that must find nothing, its end a DELETE."""
    s3.put_object(Bucket=bucket, Key="terraform.tfstate", Body=json.dumps({"serial": 0}))
    refused: list[int] = []

    def plan(who: int) -> None:
        own = client(gateway.endpoint)
        for _ in range(TURNS):
            while not locked(own, bucket, who):
                refused.append(who)
            held = own.get_object(Bucket=bucket, Key="terraform.tfstate.tflock")["Body"].read()
            assert json.loads(held) == {"ID": f"{who}"}
            state = json.loads(own.get_object(Bucket=bucket, Key="terraform.tfstate")["Body"].read())
            state["serial"] += 1
            own.put_object(Bucket=bucket, Key="terraform.tfstate", Body=json.dumps(state))
            own.delete_object(Bucket=bucket, Key="terraform.tfstate.tflock")

    failed: list[BaseException] = []

    def run(who: int) -> None:
        try:
            plan(who)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(who,)) for who in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []
    assert refused
    state = json.loads(s3.get_object(Bucket=bucket, Key="terraform.tfstate")["Body"].read())
    assert state == {"serial": WRITERS * TURNS}
