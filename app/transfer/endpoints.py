"""The two ends of a transfer: an endpoint, and a bucket there."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.transfer.errors import TransferError, code_of, describe, explained, is_not_built, status_of

LAST_MODIFIED = "x-amz-sluice-last-modified"
"""See `app.s3.wire.conditions`."""
ENABLED, SUSPENDED, UNVERSIONED, UNKNOWN = "Enabled", "Suspended", "", "unknown"
CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 10, 120, 5
_LONG_AGO = "2000-01-01T00:00:00Z"
_DATED = ("PutObject", "CompleteMultipartUpload", "DeleteObject")


@dataclass(frozen=True)
class Endpoint:
    """Where S3 is spoken, and as whom. Without keys, boto3 looks for them (environment, files, profile)."""

    url: str
    region: str = "us-east-1"
    access_key: str | None = None
    secret_key: str | None = None
    profile: str | None = None
    virtual_host: bool = False
    verify: bool | str | None = None
    """False: any certificate. A text: file of the authorities. None: those of AWS_CA_BUNDLE, or of boto3."""
    connections: int = 16


class Connection:
    """A boto3 client of an endpoint, which may date what it writes."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raise TransferError for an endpoint or keys that cannot be used."""
        address = urlsplit(endpoint.url)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise TransferError("an endpoint is http://HOST[:PORT] or https://HOST[:PORT]")
        self.url = endpoint.url
        if endpoint.verify is False:  # the user has chosen that: no warning for each request
            warnings.filterwarnings("ignore", message="Unverified HTTPS request")
        self._moment = threading.local()
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=2 * endpoint.connections,
            s3={"addressing_style": "virtual" if endpoint.virtual_host else "path"},
            # others refuse the trailing checksums that newer SDKs send; bodies have a Content-MD5 here
            request_checksum_calculation="when_required",
        )
        try:
            session = boto3.session.Session(profile_name=endpoint.profile)
            self.client: Any = session.client(
                "s3",
                endpoint_url=endpoint.url,
                region_name=endpoint.region,
                aws_access_key_id=endpoint.access_key,
                aws_secret_access_key=endpoint.secret_key,
                verify=endpoint.verify,
                config=config,
            )
        except (BotoCoreError, ValueError, OSError) as error:
            raise TransferError(f"{endpoint.url}: {describe(error)}") from None
        self.client.meta.events.register("before-call.s3", self._add_time)

    @contextmanager
    def dated(self, when: str) -> Iterator[None]:
        """Give what this thread writes that time (ISO 8601), if not empty."""
        self._moment.when = when
        try:
            yield
        finally:
            self._moment.when = ""

    def _add_time(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        when = getattr(self._moment, "when", "")
        if when and model.name in _DATED:
            params["headers"][LAST_MODIFIED] = when

    def takes_times(self, bucket: str) -> bool:
        """Return whether this is a Sluice that can date versions in that bucket.

        It refuses the header where it has no meaning; others ignore it.
        """

        def add(params: dict[str, Any], **_: Any) -> None:
            params["headers"][LAST_MODIFIED] = _LONG_AGO

        name = "before-call.s3.GetBucketLocation"
        self.client.meta.events.register(name, add)
        try:
            self.client.get_bucket_location(Bucket=bucket)
        except ClientError as error:
            return code_of(error) == "NotImplemented" and self._takes_times_of_objects(bucket)
        finally:
            self.client.meta.events.unregister(name, add)
        return False

    def _takes_times_of_objects(self, bucket: str) -> bool:
        """Return whether objects of a Sluice's bucket can be dated: plain files have times of their own."""
        try:
            with self.dated(_LONG_AGO):  # a condition that never holds: nothing is written
                self.client.put_object(Bucket=bucket, Key="never-written", Body=b"", IfMatch='"none"')
        except ClientError as error:
            return code_of(error) != "NotImplemented"
        return True


class Bucket:
    """A bucket at an endpoint."""

    def __init__(self, connection: Connection, name: str) -> None:
        self.connection = connection
        self.client = connection.client
        self.name = name
        self.where = f"s3://{name} at {connection.url}"
        self.versioning = UNVERSIONED
        """Its status, or UNKNOWN: the endpoint keeps no versions."""
        self.dated = False
        """Whether new versions can get a time of their own here."""

    @explained
    def open(self) -> bool:
        """Read what the bucket is; return False when there is none. Raises TransferError."""
        try:
            # not HeadBucket, whose errors have no body
            self.client.list_objects_v2(Bucket=self.name, MaxKeys=1)
        except ClientError as error:
            if code_of(error) == "NoSuchBucket":
                return False
            raise
        try:
            self.versioning = self.client.get_bucket_versioning(Bucket=self.name).get("Status", UNVERSIONED)
        except ClientError as error:
            if not is_not_built(error) and status_of(error) != 403:
                raise
            self.versioning = UNKNOWN
        return True

    @explained
    def create(self, *, lock: bool) -> None:
        """Create the bucket, with object lock if the source has it. Raises TransferError."""
        try:
            self.client.create_bucket(Bucket=self.name, **({"ObjectLockEnabledForBucket": True} if lock else {}))
        except ClientError as error:
            if not lock or not is_not_built(error):
                raise
            self.client.create_bucket(Bucket=self.name)
        self.open()

    def set_versioning(self, status: str) -> bool:
        """Enable or suspend versioning; return whether the endpoint can."""
        if self.versioning == status:
            return True
        try:
            self.client.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": status})
        except ClientError:
            return False
        self.versioning = status
        return True

    def has_object_lock(self) -> bool:
        """Return whether its versions can be locked."""
        try:
            found = self.client.get_object_lock_configuration(Bucket=self.name)
        except ClientError:
            return False
        return bool(found.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") == "Enabled")
