"""The storage operations by boto3: shows what an application's own client adds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.s3 import OperationResult
from sluice_s3.loadtests.payload import PIECE, pieces


class BotoObjects:
    """The objects of one bucket, by a boto3 client of its own without retries.

    Only GET has its first byte timed.
    """

    def __init__(self, endpoint: Endpoint, bucket: str, root: str = "") -> None:
        style = "virtual" if endpoint.of_bucket(bucket) else "path"
        config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": style})
        keys = endpoint.key_source()
        self._bucket, self._root = bucket, root
        self._client: Any = boto3.session.Session().client(
            "s3",
            endpoint_url=endpoint.url,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.session_token or None,
            region_name=endpoint.region,
            config=config,
        )

    def put(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        body = b"".join(pieces(size))
        return self._timed(
            lambda: self._client.put_object(Bucket=self._bucket, Key=self._root + key, Body=body) and size
        )

    def get(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        first = 0.0

        def work() -> int:
            nonlocal first
            body = self._client.get_object(Bucket=self._bucket, Key=self._root + key)["Body"]
            first = time.perf_counter()
            return sum(len(part) for part in body.iter_chunks(PIECE))

        begun = time.perf_counter()
        done = self._timed(work)
        if not done.error and done.bytes != size:
            done = done._replace(error=f"wrong length: {done.bytes} bytes instead of {size}")
        return done._replace(ttfb=first - begun) if first else done

    def stat(self, key: str) -> OperationResult:
        """See `StorageClient`."""
        return self._timed(lambda: self._client.head_object(Bucket=self._bucket, Key=self._root + key) and 0)

    def delete(self, key: str) -> OperationResult:
        """See `StorageClient`."""
        return self._timed(lambda: self._client.delete_object(Bucket=self._bucket, Key=self._root + key) and 0)

    def list(self, prefix: str, after: str, count: int) -> OperationResult:
        """See `StorageClient`."""
        asked = {
            "Bucket": self._bucket,
            "Prefix": self._root + prefix,
            "StartAfter": self._root + after,
            "MaxKeys": count,
        }
        return self._timed(lambda: self._client.list_objects_v2(**asked, MaxKeys=count) and 0)

    def prepare(self) -> str:
        """See `StorageClient`."""
        return "not by boto3"

    def sweep(self) -> str:
        """See `StorageClient`."""
        return "not by boto3"

    def open(self) -> None:
        """Do nothing: boto3 connects at the first request."""

    def close(self) -> None:
        """See `StorageClient`."""
        self._client.close()

    @staticmethod
    def _timed(work: Callable[[], int]) -> OperationResult:
        begun = time.perf_counter()
        status, error, moved = 200, "", 0
        try:
            moved = work()
        except ClientError as found:
            status = int(found.response["ResponseMetadata"].get("HTTPStatusCode", 0))
            error = "{Code}: {Message}".format(**{"Code": "", "Message": "", **found.response["Error"]})
        except (BotoCoreError, OSError) as found:
            status, error = 0, f"no answer: {found}"
        return OperationResult(time.perf_counter() - begun, None, moved, status, error[:300])
