"""The table of operations: (method, level, sub-resource) → operation with its handler and permission.

An operation without its permission cannot be registered (law 7). Sub-resources of S3 without an operation here answer
501.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from sluice_s3.app.access.policy.actions import KNOWN
from sluice_s3.app.s3.audit import record_change, trail_of
from sluice_s3.app.s3.errors import InvalidArgument, MethodNotAllowed, NotImplemented
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

Level = Literal["service", "bucket", "key"]
Handler = Callable[["Services", S3Request], Awaitable[Response]]


class Operation(NamedTuple):
    """An operation of the S3 API under its AWS name."""

    name: str
    action: str
    """The permission that it needs, as IAM writes it."""
    handler: Handler
    on_bucket: bool
    """The bucket must exist, and the permission applies to it."""
    streams: bool
    """Takes an object body, and so the aws-chunked forms."""
    authorized_per_object: bool = False
    """With a policy, `authorize_object_in_body` checks the permission after the body is read.

    It applies to each object that the body names, or depends on the tags in it.
    """
    signed_by_form: bool = False
    """The body contains the signature and the key: `authorize_form` checks the permission."""
    anonymous_error: str = ""
    """The message for anonymous callers, if nothing can allow them. Empty: a policy or ACL can."""
    is_audited: bool = False
    """It changes a bucket: the audit log has it, refused ones too."""


VERSION_ACTIONS = {
    "s3:DeleteObject": "s3:DeleteObjectVersion",
    "s3:DeleteObjectTagging": "s3:DeleteObjectVersionTagging",
    "s3:GetObject": "s3:GetObjectVersion",
    "s3:GetObjectAcl": "s3:GetObjectVersionAcl",
    "s3:GetObjectAttributes": "s3:GetObjectVersionAttributes",
    "s3:GetObjectTagging": "s3:GetObjectVersionTagging",
    "s3:PutObjectAcl": "s3:PutObjectVersionAcl",
    "s3:PutObjectTagging": "s3:PutObjectVersionTagging",
}
"""The permission for the same operation on a named version."""


ACTIONS_WITH_VERSION_ID = VERSION_ACTIONS.keys() | {
    "s3:GetObjectLegalHold",
    "s3:GetObjectRetention",
    "s3:PutObjectLegalHold",
    "s3:PutObjectRetention",
    "s3:RestoreObject",
}
"""The permissions of operations that take a `versionId`."""


def action_for_version(action: str, version_id: str | None) -> str:
    """Return the permission for an operation on an object, or on that version of it."""
    return action if version_id is None else VERSION_ACTIONS.get(action, action)


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
        "events",
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
"""Query parameters that select an operation. `events` is MinIO's (`mc watch`)."""

HEADER_VARIANTS = {("PUT", "key", ""): "copy", ("PUT", "key", "uploadId"): "uploadId+copy"}
"""Routes where `x-amz-copy-source` selects another operation."""

ROUTES: dict[tuple[str, str, str], Operation] = {}


def operation(
    method: str,
    level: Level,
    subresource: str = "",
    *,
    name: str,
    action: str,
    on_bucket: bool = True,
    streams: bool = False,
    authorized_per_object: bool = False,
    signed_by_form: bool = False,
    anonymous_error: str = "",
) -> Callable[[Handler], Handler]:
    """Register a handler. Raises ValueError for a taken route or an unknown action."""
    if action not in KNOWN:
        raise ValueError(f"{name} must say what right it needs")

    def register(handler: Handler) -> Handler:
        route = (method, level, subresource)
        if route in ROUTES:
            raise ValueError(f"{route} is {ROUTES[route].name} already")
        in_bucket = on_bucket and level != "service"
        is_audited = level == "bucket" and method in ("PUT", "DELETE")
        ROUTES[route] = Operation(
            name,
            action,
            _audited(name, handler) if is_audited else handler,
            in_bucket,
            streams,
            authorized_per_object,
            signed_by_form,
            anonymous_error,
            is_audited,
        )
        return handler

    return register


def _audited(name: str, handler: Handler) -> Handler:
    """Return the handler with its changes in the audit log."""

    async def handle(services: Services, request: S3Request) -> Response:
        return await record_change(
            services.audit,
            trail_of(request, "s3", f"s3:{name}"),
            partial(handler, services, request),
            lambda error: to_s3_error(error).code,
        )

    return handle


def find_operation(request: S3Request) -> Operation:
    """Return the operation of a request. Raises NotImplemented, MethodNotAllowed, InvalidArgument."""
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
    route = (request.method, level, subresource)
    if "x-amz-copy-source" in request.headers and route in HEADER_VARIANTS:
        route = (request.method, level, HEADER_VARIANTS[route])
    found = ROUTES.get(route)
    if found is not None:
        return found
    if subresource:
        raise NotImplemented()
    raise MethodNotAllowed(Method=request.method, ResourceType=level.upper())
