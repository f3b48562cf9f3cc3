"""`sluice recover` on Postgres: an index that was restored to an earlier point in time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.slow

BUCKET = "bucket"
BACKUP = "recover_backup"


@pytest.fixture
def url() -> str:
    return postgres.server().fresh()


@pytest.fixture
def gateway(tmp_path: Path, url: str) -> Iterator[Gateway]:
    env = {"SLUICE_INDEX": url, "SLUICE_RUNTIME_DIR": str(tmp_path / "run")}
    with Gateway(tmp_path / "data", workers=1, env=env) as started:
        yield started


def test_an_index_restored_to_an_earlier_point(gateway: Gateway, url: str) -> None:
    s3 = client(gateway.endpoint)
    s3.create_bucket(Bucket=BUCKET)
    for number in range(10):
        s3.put_object(Bucket=BUCKET, Key=f"a{number}", Body=b"first")
    gateway.stop()
    server, database = postgres.server(), url.split("/")[3].split("?")[0]
    server.sql(f"CREATE DATABASE {BACKUP} TEMPLATE {database}")
    gateway.start()
    s3 = client(gateway.endpoint)
    for number in range(10):
        s3.put_object(Bucket=BUCKET, Key=f"b{number}", Body=b"second" * (1 if number < 5 else 40_000))
    s3.delete_object(Bucket=BUCKET, Key="a0")
    gateway.stop()
    server.sql(f"DROP DATABASE {database}")
    server.sql(f"CREATE DATABASE {database} TEMPLATE {BACKUP}")
    server.sql(f"DROP DATABASE {BACKUP}")
    with pytest.raises(RuntimeError, match="did not start"):
        gateway.start()
    gateway.process = None
    assert gateway.run("recover", check=False).returncode == 0
    gateway.start()
    s3 = client(gateway.endpoint)
    found = {one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET)["Contents"]}
    assert found == {f"a{number}" for number in range(1, 10)} | {f"b{number}" for number in range(10)}
    assert s3.get_object(Bucket=BUCKET, Key="b9")["Body"].read() == b"second" * 40_000
    s3.put_object(Bucket=BUCKET, Key="later", Body=b"1")
    gateway.stop()
    assert gateway.run("fsck").stdout.endswith("clean\n")
