"""The table of operations: (method, level, sub-resource) → operation with its handler and the right it needs.

An operation that does not say what right it needs cannot be registered (law 7). What S3 knows and this gateway has
not built is in `NOT_BUILT`, and answers 501.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from app.access.policy.actions import KNOWN
from app.s3.errors import InvalidArgument, MethodNotAllowed, NotImplemented
from app.s3.request import S3Request
from app.s3.response import Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

Level = Literal["service", "bucket", "key"]
Handler = Callable[["Gateway", S3Request], Awaitable[Response]]
Begin = Callable[["Gateway", S3Request, bytes], "Change"]
HandlerNow = Callable[["Gateway", S3Request], Response]


class Change(NamedTuple):
    """An operation that has begun: what it waits for, and what answers it then or raises what that raised."""

    future: asyncio.Future[Any]
    answer: Callable[[asyncio.Future[Any]], Response]


class Operation(NamedTuple):
    """An operation of the S3 API under its AWS name."""

    name: str
    action: str
    """The right that it needs, as IAM writes it."""
    handler: Handler
    on_bucket: bool
    """The bucket must exist, and the right is asked on it."""
    streams: bool
    """Takes an object body, and so the aws-chunked forms."""
    now: HandlerNow | None = None
    """The same operation without an await; raises NotNow where it would have to wait (DESIGN §6, the fast lane)."""
    begin: Begin | None = None
    """The same for an operation that changes something: it is given the whole body and ends by itself."""
    each: bool = False
    """Where there can be a policy, the right is asked once the body was read, by `rights.check_key`: on each object
    that it names, or with the tags that it gives."""
    form: bool = False
    """Who asks, and for which key, stands in the body: the right is asked by `rights.admit_form`."""
    signed: str = ""
    """What those without a name are told, to whom no policy and no ACL can give it; empty: they may be given it."""


VERSIONED = {
    "s3:DeleteObject": "s3:DeleteObjectVersion",
    "s3:DeleteObjectTagging": "s3:DeleteObjectVersionTagging",
    "s3:GetObject": "s3:GetObjectVersion",
    "s3:GetObjectAcl": "s3:GetObjectVersionAcl",
    "s3:GetObjectAttributes": "s3:GetObjectVersionAttributes",
    "s3:GetObjectTagging": "s3:GetObjectVersionTagging",
    "s3:PutObjectAcl": "s3:PutObjectVersionAcl",
    "s3:PutObjectTagging": "s3:PutObjectVersionTagging",
}
"""The right that the same operation needs on a version that it names."""


OF_VERSIONS = VERSIONED.keys() | {
    "s3:GetObjectLegalHold",
    "s3:GetObjectRetention",
    "s3:PutObjectLegalHold",
    "s3:PutObjectRetention",
    "s3:RestoreObject",
}
"""The rights of operations that take a `versionId`."""


def right_on(action: str, version_id: str | None) -> str:
    """The right that an operation needs on an object, or on that version of it."""
    return action if version_id is None else VERSIONED.get(action, action)


SUBRESOURCES = frozenset(
    [
        "abac",
        "accelerate",
        "acl",
        "analytics",
        "annotation",
        "append",
        "attributes",
        "cors",
        "delete",
        "encryption",
        "intelligent-tiering",
        "inventory",
        "legal-hold",
        "lifecycle",
        "location",
        "logging",
        "metadataAnnotationTable",
        "metadataConfiguration",
        "metadataInventoryTable",
        "metadataJournalTable",
        "metadataTable",
        "metrics",
        "notification",
        "object-lock",
        "ownershipControls",
        "policy",
        "policyStatus",
        "publicAccessBlock",
        "renameObject",
        "replication",
        "requestPayment",
        "restore",
        "retention",
        "select",
        "session",
        "tagging",
        "torrent",
        "uploadId",
        "uploads",
        "versioning",
        "versions",
        "website",
    ]
)
"""Query parameters that choose an operation."""

HEADER_VARIANTS = {("PUT", "key", ""): "copy", ("PUT", "key", "uploadId"): "uploadId+copy"}
"""Places where `x-amz-copy-source` makes it another operation."""

TABLE: dict[tuple[str, str, str], Operation] = {}


def operation(
    method: str,
    level: Level,
    subresource: str = "",
    *,
    name: str,
    action: str,
    on_bucket: bool = True,
    streams: bool = False,
    now: HandlerNow | None = None,
    begin: Begin | None = None,
    each: bool = False,
    form: bool = False,
    signed: str = "",
) -> Callable[[Handler], Handler]:
    """Register a handler. Raises ValueError for a place that is taken or an action that is none."""
    if action not in KNOWN:
        raise ValueError(f"{name} must say what right it needs")

    def register(handler: Handler) -> Handler:
        place = (method, level, subresource)
        if place in TABLE:
            raise ValueError(f"{place} is {TABLE[place].name} already")
        in_bucket = on_bucket and level != "service"
        TABLE[place] = Operation(name, action, handler, in_bucket, streams, now, begin, each, form, signed)
        return handler

    return register


def find(request: S3Request) -> Operation:
    """The operation that a request asks for. Raises NotImplemented, MethodNotAllowed, InvalidArgument."""
    level = "service" if request.bucket is None else "bucket" if request.key is None else "key"
    subresource = ""
    if request.query:
        chosen = SUBRESOURCES.intersection(request.query)
        if len(chosen) > 1:
            raise InvalidArgument(
                "Conflicting query string parameters: " + ", ".join(sorted(chosen)), ArgumentName="ResourceType"
            )
        if chosen:
            (subresource,) = chosen
    place = (request.method, level, subresource)
    if "x-amz-copy-source" in request.headers and place in HEADER_VARIANTS:
        place = (request.method, level, HEADER_VARIANTS[place])
    found = TABLE.get(place)
    if found is not None:
        return found
    if subresource:
        raise NotImplemented()
    raise MethodNotAllowed(Method=request.method, ResourceType=level.upper())
