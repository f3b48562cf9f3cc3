"""The values of the condition keys that a request has.

Each key has one source, which is never a header or a parameter that happens to have the key's name. `SourceIp` is the
connection's address, or the one that a configured trusted proxy reports. Sources: "AWS global condition context keys",
IAM User Guide; "Actions, resources, and condition keys for Amazon S3", Service Authorization Reference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.authorize import ConditionNotLoaded
from sluice_s3.app.access.policy.condition_keys import EXISTING_TAG, REQUEST_TAG, REQUEST_TAG_KEYS
from sluice_s3.app.encryption.scheme import CUSTOMER, KMS, Scheme, scheme_of
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock.protection import MODES, Lock
from sluice_s3.app.s3.encryption.customer_keys import SSE
from sluice_s3.app.s3.object_lock import xml as documents
from sluice_s3.app.s3.objects.copy_source import policy_resource
from sluice_s3.app.s3.tagging.tags import requested_tags
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.dates import parse_basic
from sluice_s3.app.s3.wire.request import S3Request

FindValue = Callable[["ConditionContext"], str | None]

NEW_TAG, NEW_TAG_KEYS = "aws:requesttag/", "aws:tagkeys"
TAGS_NOT_LOADED: dict[str, str] = {}
"""Stands for the tags of an object not yet loaded. Compared by identity, not by content."""

LIST_OPERATIONS = frozenset({"ListObjects", "ListObjectsV2", "ListObjectVersions", "ListMultipartUploads"})
HEADERS = frozenset(
    [
        "x-amz-acl",
        "x-amz-grant-full-control",
        "x-amz-grant-read",
        "x-amz-grant-read-acp",
        "x-amz-grant-write",
        "x-amz-grant-write-acp",
        "x-amz-metadata-directive",
        "x-amz-object-ownership",
        "x-amz-storage-class",
        "x-amz-website-redirect-location",
        "x-amz-content-sha256",
    ]
)
"""Headers that are condition keys with the prefix `s3:`."""
AUTH_TYPES = {"query": "REST-QUERY-STRING", "header": "REST-HEADER", "form": "POST"}
PART_OPERATIONS = frozenset({"UploadPart", "UploadPartCopy", "CompleteMultipartUpload"})
"""Operations whose encryption is that of their upload.

"Uploading an object using multipart upload", Amazon S3 User Guide: parts have the encryption of the upload.
"""
CREATES_OBJECT = frozenset({"PutObject", "PostObject", "CopyObject", "CompleteMultipartUpload"})


class ConditionContext:
    """Condition keys of one request on one bucket. `find_values` looks one up by its name in lower case."""

    def __init__(
        self,
        request: S3Request,
        bucket: Bucket | None,
        *,
        copying_from: bool = False,
        version_id: str | None = None,
        listed_key: str | None = None,
        tags: dict[str, str] | None = None,
    ) -> None:
        """`bucket` is None where there is none (yet).

        `copying_from`: the bucket is the source of a copy, for which only the version counts.

        `tags` are those of the object, None where they do not matter for the action.

        `listed_key`: whether such a key exists is checked, which is a listing with that prefix.
        """
        self.request = request
        self.bucket = bucket
        self.now = time.time()
        self.version_id = version_id
        self.listed_key = listed_key
        self.tags = tags
        self.upload: str | None = None
        """The stored headers of the request's upload; None: not yet loaded."""
        self.is_target = not copying_from

    def find_values(self, key: str) -> tuple[str, ...] | None:
        """Return the values of a key; None when the request has none.

        Raises ConditionNotLoaded for what is not known yet: tags of the object, encryption of the upload.
        """
        find_value = GLOBAL_KEYS.get(key)
        if find_value is None and self.is_target:
            find_value = TARGET_KEYS.get(key)
        if find_value is None:
            return self._find_tag_values(key)
        value = find_value(self)
        return None if value is None else (value,)

    def find_kms_values(self, key: str) -> tuple[str, ...] | None:
        """Return the values of a key where a KMS key is used, without S3's keys.

        "Condition keys for AWS KMS", Service Authorization Reference.
        """
        if key == "kms:viaservice" and self.bucket is not None:
            return (f"s3.{self.bucket.region}.amazonaws.com",)
        if key == "kms:calleraccount" and self.request.account_id is not None:
            return (account_number(self.request.account_id),)
        return self.find_values(key) if key.startswith("aws:") else None

    def _find_tag_values(self, key: str) -> tuple[str, ...] | None:
        """Return the values for a tag in the key's name, or the tag keys. Case does not matter."""
        if key.startswith(EXISTING_TAG):
            if self.tags is TAGS_NOT_LOADED:
                raise ConditionNotLoaded
            return _values(self.tags or {}, key.removeprefix(EXISTING_TAG))
        if key.startswith(NEW_TAG) or key == NEW_TAG_KEYS:
            return self._find_new_bucket_values(key)
        if not self.is_target or not key.startswith((REQUEST_TAG, REQUEST_TAG_KEYS)):
            return None
        tags = requested_tags(self.request)
        return tuple(tags) or None if key == REQUEST_TAG_KEYS else _values(tags, key.removeprefix(REQUEST_TAG))

    def _find_new_bucket_values(self, key: str) -> tuple[str, ...] | None:
        """Return the same for the tags of a new bucket. Raises ConditionNotLoaded before they are read."""
        if self.request.operation != "CreateBucket":
            return None
        tags = self.request.bucket_tags
        if tags is None:
            raise ConditionNotLoaded
        return tuple(tags) or None if key == NEW_TAG_KEYS else _values(tags, key.removeprefix(NEW_TAG))


def _values(tags: dict[str, str], key: str) -> tuple[str, ...] | None:
    return tuple(value for name, value in tags.items() if name.lower() == key) or None


def _header(name: str) -> FindValue:
    return lambda context: context.request.headers.get(name)


def _list_parameter(name: str) -> FindValue:
    return lambda context: context.request.query.get(name) if context.request.operation in LIST_OPERATIONS else None


def _prefix(context: ConditionContext) -> str | None:
    return _listed_prefix(context) if context.listed_key is None else context.listed_key


_listed_prefix = _list_parameter("prefix")


def _region(context: ConditionContext) -> str | None:
    """Return the region. Raises ConditionNotLoaded before that of a new bucket is read."""
    if context.bucket is None:
        _location(context)
    return (context.request if context.bucket is None else context.bucket).region or None


def _resource_account(context: ConditionContext) -> str | None:
    """Return the account of the bucket's owner. Without a bucket, the caller's own."""
    owner_id = context.request.account_id if context.bucket is None else context.bucket.owner_id
    return None if owner_id is None else account_number(owner_id)


def _session_value(take: Callable[[int], str]) -> FindValue:
    """Derive a value from the start of the session; None without a session."""

    def find_value(context: ConditionContext) -> str | None:
        principal = context.request.principal
        return None if principal is None or principal.began is None else take(principal.began)

    return find_value


def _principal_value(name: str, account: Callable[[str], str]) -> FindValue:
    """Return a field of the principal. For the account itself, what `account` derives from its id."""

    def find_value(context: ConditionContext) -> str | None:
        principal, account_id = context.request.principal, context.request.account_id
        if principal is not None:
            return getattr(principal, name) or None
        return account(account_id) or None if account_id is not None else None

    return find_value


def _account_value(take: Callable[[str], str]) -> FindValue:
    def find_value(context: ConditionContext) -> str | None:
        account_id = context.request.account_id
        return None if account_id is None else take(account_id)

    return find_value


def _via(context: ConditionContext) -> str | None:
    signature = context.request.signature
    return None if signature is None else AUTH_TYPES[signature.via]


def _signature_version(context: ConditionContext) -> str | None:
    signature = context.request.signature
    return None if signature is None else "AWS" if signature.version == "v2" else "AWS4-HMAC-SHA256"


def _signature_age(context: ConditionContext) -> str | None:
    """Return the milliseconds since a URL or a form was signed. 0 for version 2, which has no time."""
    signature = context.request.signature
    if signature is None or signature.via == "header":
        return None
    if signature.version == "v2":
        return "0"
    signed_at = parse_basic(signature.date if signature.via == "form" else context.request.query.get("X-Amz-Date", ""))
    return None if signed_at is None else str(int((context.now - signed_at) * 1000))


def _location(context: ConditionContext) -> str | None:
    """Return the location. Raises ConditionNotLoaded before its document is read: authorization then repeats."""
    if context.request.operation != "CreateBucket":
        return None
    if context.request.location is None:
        raise ConditionNotLoaded
    return context.request.location or None


def _kms_key(scheme: Scheme) -> str:
    return scheme.key if scheme.method == KMS else ""


def _encryption(name: str, take: Callable[[Scheme], str]) -> FindValue:
    """Return the encryption of the request's header, or that of its upload. Raises ConditionNotLoaded."""

    def find_value(context: ConditionContext) -> str | None:
        if context.request.operation not in PART_OPERATIONS:
            return context.request.headers.get(name)
        if context.upload is None:
            raise ConditionNotLoaded
        scheme = scheme_of(context.upload)
        return None if scheme is None else take(scheme) or None

    return find_value


def _copy_source(context: ConditionContext) -> str | None:
    value = context.request.headers.get("x-amz-copy-source")
    return None if value is None else policy_resource(value)


def _lock(context: ConditionContext) -> Lock:
    """Return the lock in the request's document, else in its headers. Invalid values are ignored."""
    request = context.request
    if request.lock is not None:
        return request.lock  # type: ignore[no-any-return]
    mode = request.headers.get(documents.MODE, "")
    until = documents.parse_timestamp(request.headers.get(documents.UNTIL, ""))
    hold = documents.HOLDS.get(request.headers.get(documents.HOLD, ""))
    return Lock(mode if mode in MODES else "", until or 0, hold)


def _retain_until(context: ConditionContext) -> str | None:
    until = _lock(context).until
    return xml.timestamp(until) if until else None


def _remaining_days(context: ConditionContext) -> str | None:
    """Return the days until the retention ends, rounded up."""
    until = _lock(context).until
    return str(math.ceil((until / 1000 - context.now) / 86400)) if until else None


def _legal_hold(context: ConditionContext) -> str | None:
    hold = _lock(context).hold
    return None if hold is None else "ON" if hold else "OFF"


_principal_type = _principal_value("kind", lambda account_id: "Account")
_user_id = _principal_value("user_id", account_number)

GLOBAL_KEYS: dict[str, FindValue] = {
    "aws:currenttime": lambda context: datetime.fromtimestamp(context.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "aws:epochtime": lambda context: str(int(context.now)),
    "aws:principalaccount": _account_value(account_number),
    "aws:principalarn": _principal_value("arn", lambda account_id: caller_of(account_id).arn),
    "aws:principaltype": lambda context: _principal_type(context) or "Anonymous",
    "aws:username": _principal_value("name", lambda account_id: ""),
    "aws:tokenissuetime": _session_value(lambda began: xml.format_second(began // 1000) + "Z"),
    "aws:multifactorauthpresent": _session_value(lambda began: "false"),
    "aws:principalisawsservice": lambda context: "false",
    "aws:viaawsservice": lambda context: "false",
    "aws:userid": lambda context: _user_id(context) or "anonymous",
    "aws:referer": _header("referer"),
    "aws:useragent": _header("user-agent"),
    "aws:requestedregion": _region,
    "aws:resourceaccount": _resource_account,
    "s3:resourceaccount": _resource_account,
    "aws:securetransport": lambda context: "true" if context.request.scheme == "https" else "false",
    "aws:sourceip": lambda context: context.request.client or None,
    "s3:authtype": _via,
    "s3:signatureversion": _signature_version,
    "s3:signatureage": _signature_age,
    "s3:versionid": lambda context: context.version_id,
}
"""Keys of every request."""

TARGET_KEYS: dict[str, FindValue] = {
    **{f"s3:{name}": _header(name) for name in HEADERS},
    **{f"s3:{name}": _list_parameter(name) for name in ("delimiter", "max-keys")},
    f"s3:{SSE}": _encryption(SSE, lambda scheme: "" if scheme.method == CUSTOMER else scheme.method),
    f"s3:{SSE}-aws-kms-key-id": _encryption(f"{SSE}-aws-kms-key-id", _kms_key),
    f"s3:{SSE}-customer-algorithm": _encryption(
        f"{SSE}-customer-algorithm", lambda scheme: "AES256" if scheme.method == CUSTOMER else ""
    ),
    "s3:prefix": _prefix,
    "s3:if-match": _header("if-match"),
    "s3:if-none-match": _header("if-none-match"),
    "s3:objectcreationoperation": lambda context: "true" if context.request.operation in CREATES_OBJECT else "false",
    "s3:x-amz-copy-source": _copy_source,
    "s3:locationconstraint": _location,
    "s3:object-lock-mode": lambda context: _lock(context).mode or None,
    "s3:object-lock-retain-until-date": _retain_until,
    "s3:object-lock-remaining-retention-days": _remaining_days,
    "s3:object-lock-legal-hold": _legal_hold,
}
"""Keys of the request on its own bucket, not on one that it copies from."""
