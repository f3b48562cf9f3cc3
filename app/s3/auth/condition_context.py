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
from sluice_s3.app.index.object_lock import MODES, Lock
from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.s3.encryption.customer_keys import SSE
from sluice_s3.app.s3.object_lock import xml as documents
from sluice_s3.app.s3.objects.copy_source import policy_resource
from sluice_s3.app.s3.tagging.tags import requested_tags
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.dates import parse_basic
from sluice_s3.app.s3.wire.request import S3Request

Fact = Callable[["ConditionContext"], str | None]

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
    """Condition keys of one request on one bucket. `values` looks one up by its name in lower case."""

    def __init__(
        self,
        request: S3Request,
        bucket: Bucket | None,
        *,
        copying_from: bool = False,
        version_id: str | None = None,
        sought: str | None = None,
        tags: dict[str, str] | None = None,
    ) -> None:
        """`bucket` is None where there is none (yet).

        `copying_from`: the bucket is the source of a copy, for which only the version counts.

        `tags` are those of the object, None where they do not matter for the action.

        `sought`: whether such a key exists is checked, which is a listing with that prefix.
        """
        self.request = request
        self.bucket = bucket
        self.now = time.time()
        self.version_id = version_id
        self.sought = sought
        self.tags = tags
        self.upload: str | None = None
        """The stored headers of the request's upload; None: not yet loaded."""
        self.of_target = not copying_from

    def values(self, key: str) -> tuple[str, ...] | None:
        """Return the values of a key; None when the request has none.

        Raises ConditionNotLoaded for what is not known yet: tags of the object, encryption of the upload.
        """
        fact = GLOBAL_KEYS.get(key)
        if fact is None and self.of_target:
            fact = TARGET_KEYS.get(key)
        if fact is None:
            return self._of_tags(key)
        found = fact(self)
        return None if found is None else (found,)

    def of_key(self, key: str) -> tuple[str, ...] | None:
        """Return the values of a key where a KMS key is used, without S3's keys.

        "Condition keys for AWS KMS", Service Authorization Reference.
        """
        if key == "kms:viaservice" and self.bucket is not None:
            return (f"s3.{self.bucket.region}.amazonaws.com",)
        if key == "kms:calleraccount" and self.request.account_id is not None:
            return (account_number(self.request.account_id),)
        return self.values(key) if key.startswith("aws:") else None

    def _of_tags(self, key: str) -> tuple[str, ...] | None:
        """Return the values for a tag in the key's name, or the tag keys. Case does not matter."""
        if key.startswith(EXISTING_TAG):
            if self.tags is TAGS_NOT_LOADED:
                raise ConditionNotLoaded
            return _values(self.tags or {}, key.removeprefix(EXISTING_TAG))
        if key.startswith(NEW_TAG) or key == NEW_TAG_KEYS:
            return self._of_new_bucket(key)
        if not self.of_target or not key.startswith((REQUEST_TAG, REQUEST_TAG_KEYS)):
            return None
        given = requested_tags(self.request)
        return tuple(given) or None if key == REQUEST_TAG_KEYS else _values(given, key.removeprefix(REQUEST_TAG))

    def _of_new_bucket(self, key: str) -> tuple[str, ...] | None:
        """Return the same for the tags of a new bucket. Raises ConditionNotLoaded before they are read."""
        if self.request.operation != "CreateBucket":
            return None
        given = self.request.bucket_tags
        if given is None:
            raise ConditionNotLoaded
        return tuple(given) or None if key == NEW_TAG_KEYS else _values(given, key.removeprefix(NEW_TAG))


def _values(tags: dict[str, str], key: str) -> tuple[str, ...] | None:
    return tuple(value for name, value in tags.items() if name.lower() == key) or None


def _header(name: str) -> Fact:
    return lambda facts: facts.request.headers.get(name)


def _of_list(name: str) -> Fact:
    return lambda facts: facts.request.query.get(name) if facts.request.operation in LIST_OPERATIONS else None


def _prefix(facts: ConditionContext) -> str | None:
    return _listed_prefix(facts) if facts.sought is None else facts.sought


_listed_prefix = _of_list("prefix")


def _region(facts: ConditionContext) -> str | None:
    """Return the region. Raises ConditionNotLoaded before that of a new bucket is read."""
    if facts.bucket is None:
        _location(facts)
    return (facts.request if facts.bucket is None else facts.bucket).region or None


def _resource_account(facts: ConditionContext) -> str | None:
    """Return the account of the bucket's owner. Without a bucket, the caller's own."""
    owner_id = facts.request.account_id if facts.bucket is None else facts.bucket.owner_id
    return None if owner_id is None else account_number(owner_id)


def _of_session(take: Callable[[int], str]) -> Fact:
    """Derive a value from the start of the session; None without a session."""

    def fact(facts: ConditionContext) -> str | None:
        principal = facts.request.principal
        return None if principal is None or principal.began is None else take(principal.began)

    return fact


def _of_principal(name: str, account: Callable[[str], str]) -> Fact:
    """Return a field of the principal. For the account itself, what `account` derives from its id."""

    def fact(facts: ConditionContext) -> str | None:
        principal, account_id = facts.request.principal, facts.request.account_id
        if principal is not None:
            return getattr(principal, name) or None
        return account(account_id) or None if account_id is not None else None

    return fact


def _of_account(take: Callable[[str], str]) -> Fact:
    def fact(facts: ConditionContext) -> str | None:
        account_id = facts.request.account_id
        return None if account_id is None else take(account_id)

    return fact


def _via(facts: ConditionContext) -> str | None:
    claim = facts.request.signature
    return None if claim is None else AUTH_TYPES[claim.via]


def _signature_version(facts: ConditionContext) -> str | None:
    claim = facts.request.signature
    return None if claim is None else "AWS" if claim.version == "v2" else "AWS4-HMAC-SHA256"


def _signature_age(facts: ConditionContext) -> str | None:
    """Return the milliseconds since a URL or a form was signed. 0 for version 2, which has no time."""
    claim = facts.request.signature
    if claim is None or claim.via == "header":
        return None
    if claim.version == "v2":
        return "0"
    signed = parse_basic(claim.date if claim.via == "form" else facts.request.query.get("X-Amz-Date", ""))
    return None if signed is None else str(int((facts.now - signed) * 1000))


def _location(facts: ConditionContext) -> str | None:
    """Return the location. Raises ConditionNotLoaded before its document is read: authorization then repeats."""
    if facts.request.operation != "CreateBucket":
        return None
    if facts.request.location is None:
        raise ConditionNotLoaded
    return facts.request.location or None


def _kms_key(scheme: Scheme) -> str:
    return scheme.key if scheme.method == KMS else ""


def _encryption(name: str, take: Callable[[Scheme], str]) -> Fact:
    """Return the encryption of the request's header, or that of its upload. Raises ConditionNotLoaded."""

    def fact(facts: ConditionContext) -> str | None:
        if facts.request.operation not in PART_OPERATIONS:
            return facts.request.headers.get(name)
        if facts.upload is None:
            raise ConditionNotLoaded
        scheme = scheme_of(facts.upload)
        return None if scheme is None else take(scheme) or None

    return fact


def _copy_source(facts: ConditionContext) -> str | None:
    value = facts.request.headers.get("x-amz-copy-source")
    return None if value is None else policy_resource(value)


def _lock(facts: ConditionContext) -> Lock:
    """Return the lock in the request's document, else in its headers. Invalid values are ignored."""
    request = facts.request
    if request.lock is not None:
        return request.lock  # type: ignore[no-any-return]
    mode = request.headers.get(documents.MODE, "")
    until = documents.parse_timestamp(request.headers.get(documents.UNTIL, ""))
    hold = documents.HOLDS.get(request.headers.get(documents.HOLD, ""))
    return Lock(mode if mode in MODES else "", until or 0, hold)


def _retain_until(facts: ConditionContext) -> str | None:
    until = _lock(facts).until
    return xml.timestamp(until) if until else None


def _remaining_days(facts: ConditionContext) -> str | None:
    """Return the days until the retention ends, rounded up."""
    until = _lock(facts).until
    return str(math.ceil((until / 1000 - facts.now) / 86400)) if until else None


def _legal_hold(facts: ConditionContext) -> str | None:
    hold = _lock(facts).hold
    return None if hold is None else "ON" if hold else "OFF"


_principal_type = _of_principal("kind", lambda account_id: "Account")
_user_id = _of_principal("user_id", account_number)

GLOBAL_KEYS: dict[str, Fact] = {
    "aws:currenttime": lambda facts: datetime.fromtimestamp(facts.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "aws:epochtime": lambda facts: str(int(facts.now)),
    "aws:principalaccount": _of_account(account_number),
    "aws:principalarn": _of_principal("arn", lambda account_id: caller_of(account_id).arn),
    "aws:principaltype": lambda facts: _principal_type(facts) or "Anonymous",
    "aws:username": _of_principal("name", lambda account_id: ""),
    "aws:tokenissuetime": _of_session(lambda began: xml.format_second(began // 1000) + "Z"),
    "aws:multifactorauthpresent": _of_session(lambda began: "false"),
    "aws:principalisawsservice": lambda facts: "false",
    "aws:viaawsservice": lambda facts: "false",
    "aws:userid": lambda facts: _user_id(facts) or "anonymous",
    "aws:referer": _header("referer"),
    "aws:useragent": _header("user-agent"),
    "aws:requestedregion": _region,
    "aws:resourceaccount": _resource_account,
    "s3:resourceaccount": _resource_account,
    "aws:securetransport": lambda facts: "true" if facts.request.scheme == "https" else "false",
    "aws:sourceip": lambda facts: facts.request.client or None,
    "s3:authtype": _via,
    "s3:signatureversion": _signature_version,
    "s3:signatureage": _signature_age,
    "s3:versionid": lambda facts: facts.version_id,
}
"""Keys of every request."""

TARGET_KEYS: dict[str, Fact] = {
    **{f"s3:{name}": _header(name) for name in HEADERS},
    **{f"s3:{name}": _of_list(name) for name in ("delimiter", "max-keys")},
    f"s3:{SSE}": _encryption(SSE, lambda scheme: "" if scheme.method == CUSTOMER else scheme.method),
    f"s3:{SSE}-aws-kms-key-id": _encryption(f"{SSE}-aws-kms-key-id", _kms_key),
    f"s3:{SSE}-customer-algorithm": _encryption(
        f"{SSE}-customer-algorithm", lambda scheme: "AES256" if scheme.method == CUSTOMER else ""
    ),
    "s3:prefix": _prefix,
    "s3:if-match": _header("if-match"),
    "s3:if-none-match": _header("if-none-match"),
    "s3:objectcreationoperation": lambda facts: "true" if facts.request.operation in CREATES_OBJECT else "false",
    "s3:x-amz-copy-source": _copy_source,
    "s3:locationconstraint": _location,
    "s3:object-lock-mode": lambda facts: _lock(facts).mode or None,
    "s3:object-lock-retain-until-date": _retain_until,
    "s3:object-lock-remaining-retention-days": _remaining_days,
    "s3:object-lock-legal-hold": _legal_hold,
}
"""Keys of the request on its own bucket, not on one that it copies from."""
