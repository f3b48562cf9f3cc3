"""Lifecycle rules with several gateways: one runs them, another one when that is gone, and each takes the same away."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.cluster.site import BUCKET, LIMIT, Cluster, cluster

pytestmark = pytest.mark.crash

LEASE = "lifecycle"
OLD, KEPT = 80, 20
ENV = {"SLUICE_LIFECYCLE_DAY_SECONDS": "1", "SLUICE_LIFECYCLE_RATE": "10"}


def versions(s3: Any) -> list[str]:
    """The key of each version and delete marker."""
    found: list[str] = []
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET):
        found += [entry["Key"] for entry in page.get("Versions", []) + page.get("DeleteMarkers", [])]
    return sorted(found)


def fill(s3: Any) -> list[str]:
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    for number in range(OLD):
        s3.put_object(Bucket=BUCKET, Key=f"old/{number:03}", Body=b"old")
    for number in range(KEPT):
        s3.put_object(Bucket=BUCKET, Key=f"kept/{number:03}", Body=b"%d" % number)
    rule = {
        "ID": "old",
        "Status": "Enabled",
        "Filter": {"Prefix": "old/"},
        "Expiration": {"Days": 1},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
    }
    s3.put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration={"Rules": [rule]})
    return [f"kept/{number:03}" for number in range(KEPT)]


@pytest.mark.parametrize("stopped", [False, True])
def test_another_gateway_goes_on(tmp_path: Path, stopped: bool) -> None:
    """When the one that is at it is killed, or stopped and let go on later."""
    with cluster(tmp_path, env=ENV) as found:
        kept = fill(found.s3())
        found.wait_until(lambda: found.holder(LEASE) is not None, "somebody holds the lease")
        found.wait_until(lambda: len(versions(found.s3())) != OLD + KEPT, "it has begun")
        number = found.holder(LEASE)
        assert number is not None
        if stopped:
            found.freeze(number)
        else:
            found.gateways[number].kill()
        other = (number + 1) % 3
        found.wait_until(lambda: found.holder(LEASE) not in (None, number), "another one holds it")
        if stopped:
            time.sleep(LIMIT)
            found.thaw(number)
        found.wait_until(lambda: versions(found.s3(other)) == kept, "only what stays is there", 240)
        for key in kept:
            body = found.s3(other).get_object(Bucket=BUCKET, Key=key)["Body"].read()
            assert body == b"%d" % int(key[-3:])
        _settled(found, None if stopped else number)


def _settled(found: Cluster, dead: int | None) -> None:
    if dead is not None:
        found.gateways[dead].start()
    found.wait_until(lambda: found.sql("SELECT count(*) FROM discards") == "0", "all that went is taken away")
    report = found.fsck()
    assert report["code"] == 0, report
