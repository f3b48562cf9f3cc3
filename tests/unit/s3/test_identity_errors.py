"""IAM and STS answer every error in their own form, which the SDKs' query parsers read."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from sluice_s3.app.errors import CommitUnknown, DomainError, Overloaded, StoreFull, StoreUnavailable
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.s3.test_fast_path import ROOT, two

CALLS = {
    "iam": ("add_identity", "create_user", {"UserName": "somebody"}),
    "sts": ("add_session", "get_session_token", {}),
}
"""Of a service: what fails in the index, and what a client calls."""
FAILURES: list[tuple[Exception, int, str]] = [
    (Overloaded(), 400, "Throttling"),
    (StoreUnavailable(reason="away"), 503, "ServiceUnavailable"),
    (CommitUnknown(), 503, "ServiceUnavailable"),
    (StoreFull(), 503, "ServiceUnavailable"),
    (DomainError(), 500, "InternalFailure"),
    (ValueError("/secret/path"), 500, "InternalFailure"),
]


@pytest.mark.parametrize("service", CALLS)
async def test_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str) -> None:
    method, call, parameters = CALLS[service]
    async with two(tmp_path) as gateway:
        client: Any = boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{gateway.ordinary}",
            aws_access_key_id=ROOT.access,
            aws_secret_access_key=ROOT.secret,
            region_name="us-east-1",
            config=Config(retries={"total_max_attempts": 1}),
        )
        for failure, status, code in FAILURES:

            async def fail(*_: Any, failure: Exception = failure) -> None:
                raise failure

            monkeypatch.setattr(SqliteIndex, method, fail)
            gateway.context.observed.clear()
            with pytest.raises(ClientError) as error:
                await asyncio.to_thread(getattr(client, call), **parameters)
            response = error.value.response
            assert response["Error"]["Code"] == code
            assert response["Error"]["Type"] == ("Sender" if status == 400 else "Receiver")
            assert response["ResponseMetadata"]["HTTPStatusCode"] == status
            assert response["ResponseMetadata"]["RequestId"]
            assert "secret" not in str(response)
            await gateway.was_observed()
            assert gateway.context.observed[0][5] == code
