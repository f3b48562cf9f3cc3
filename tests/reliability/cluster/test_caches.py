"""What one gateway changed of keys and buckets the others know at once: their caches are emptied."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from tests.reliability.cluster.site import Cluster
from tests.support.gateway import client


def code_of(call: object, **arguments: object) -> str:
    """The error that a call gets, empty for none."""
    try:
        call(**arguments)  # type: ignore[operator]
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def test_keys(shared: Cluster) -> None:
    """A key is disabled by a command on one host, while all gateways have it in their caches."""
    gateway = shared.gateways[0]
    made = gateway.run("user", "add", "--access-key", "ALICEKEY", "--secret-key", "alice-secret-key")
    assert made.returncode == 0
    clients = [client(endpoint, "ALICEKEY", "alice-secret-key") for endpoint in shared.endpoints]
    for one in clients:
        assert code_of(one.list_buckets) == ""
    gateway.run("user", "disable", "ALICEKEY")
    for number, one in enumerate(clients):
        shared.wait_until(lambda one=one: code_of(one.list_buckets) != "", f"gateway {number} refuses the key", 10)
    gateway.run("user", "enable", "ALICEKEY")
    for number, one in enumerate(clients):
        shared.wait_until(lambda one=one: code_of(one.list_buckets) == "", f"gateway {number} takes the key", 10)


@pytest.mark.parametrize("rounds", [3])
def test_buckets(shared: Cluster, rounds: int) -> None:
    """A bucket that was deleted through one gateway, and made anew, is another one for all."""
    s3 = [shared.s3(number) for number in range(3)]
    for number in range(rounds):
        first, second, third = (s3[(number + place) % 3] for place in range(3))
        first.create_bucket(Bucket="passing")
        second.put_object(Bucket="passing", Key="k", Body=b"%d" % number)
        assert third.get_object(Bucket="passing", Key="k")["Body"].read() == b"%d" % number
        second.delete_object(Bucket="passing", Key="k")
        first.delete_bucket(Bucket="passing")
        for one in s3:
            shared.wait_until(
                lambda one=one: code_of(one.list_objects_v2, Bucket="passing") == "NoSuchBucket", "it is gone", 10
            )
