"""docs/reference against a running gateway: what it answers to each operation of S3, and its metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from scripts.generated_pages import REFERENCE
from scripts.operations_table import least_parameters, s3_operations
from tests.support.gateway import Gateway, client

ROW = re.compile(r"^\| \[(\w+)\]\(\S+\) \| (\w+) \|", re.M)
OTHER_HOST = {"WriteGetObjectResponse"}
"""Operations that botocore sends to another host."""
NEEDS_ARCHIVE = {"RestoreObject"}
"""Operations that are 501 in a gateway that has no archive, as the table's note says."""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with Gateway(tmp_path_factory.mktemp("operations") / "data", options=["--admin-port", "0"]) as running:
        yield running


def status_of(s3: Any, operation: Any, bucket: str) -> int:
    parameters = least_parameters(operation.input_shape)
    if "Bucket" in parameters:
        parameters["Bucket"] = bucket
    try:
        return int(s3._make_api_call(operation.name, parameters)["ResponseMetadata"]["HTTPStatusCode"])
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"])


def test_each_operation_is_answered_as_the_table_says(gateway: Gateway) -> None:
    said = dict(ROW.findall((REFERENCE / "operations.md").read_text()))
    s3 = client(gateway.endpoint)
    operations = s3_operations()
    assert [one.name for one in operations] == sorted(said)
    wrong = {}
    for operation in operations:
        if operation.name in OTHER_HOST:
            continue
        s3.create_bucket(Bucket="operations")
        status = status_of(s3, operation, "operations")
        if (status == 501) != (said[operation.name] == "501" or operation.name in NEEDS_ARCHIVE) or status == 500:
            wrong[operation.name] = status
    assert not wrong


def test_the_page_has_every_metric_of_a_gateway(gateway: Gateway) -> None:
    live = set(re.findall(r"^# TYPE (\w+)", httpx.get(f"{gateway.admin}/metrics").text, re.M))
    page = set(re.findall(r"^\| `(\w+)`", (REFERENCE / "metrics.md").read_text(), re.M))
    assert live
    assert live <= page
