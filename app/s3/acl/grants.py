"""Access control lists in requests, as canned ACLs, headers or documents, and their rendering.

"Access control list (ACL) overview", Amazon S3 User Guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element

from sluice_s3.app.access.acl import (
    FULL_CONTROL,
    GROUPS,
    KNOWN_GROUPS,
    MAX_GRANTS,
    PERMISSIONS,
    Grant,
    Grants,
    canned_grants,
)
from sluice_s3.app.access.bucket_access import PREFERRED, BucketAccess, access_of
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import (
    AccessControlListNotSupported,
    AccessDenied,
    InvalidArgument,
    InvalidRequest,
    MalformedACLError,
    UnresolvableGrantByEmailAddress,
)
from sluice_s3.app.s3.unsupported_headers import COMMON_HEADERS
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ANONYMOUS = "65a011a29cdf8ec533ec3d1ccaae921c"
"""The canonical id that AWS gives to objects of anonymous writers."""
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
HEADERS = {
    "x-amz-grant-full-control": "FULL_CONTROL",
    "x-amz-grant-read": "READ",
    "x-amz-grant-write": "WRITE",
    "x-amz-grant-read-acp": "READ_ACP",
    "x-amz-grant-write-acp": "WRITE_ACP",
}
IMPLIED_CANNED_ACLS = frozenset({"private", "bucket-owner-full-control"})
"""Canned ACLs that mean what a bucket without ACLs does: only the owner has rights.

AWS refuses `private` (User Guide, "Controlling ownership of objects and disabling ACLs"), which rclone before 1.61
sends with every write.
"""


class NewObjectOwnership(NamedTuple):
    """The owner of an object to be written, and its ACL. None: only its owner has rights."""

    owner_id: str
    grants: Grants | None


class RequestedGrant(NamedTuple):
    """A grantee as a request names it: `id`, `uri` or `emailAddress`, and its value."""

    kind: str
    value: str
    permission: str


def has_acl_headers(request: S3Request) -> bool:
    """Return whether the headers set an ACL."""
    return _find_canned_acl(request) is not None or not HEADERS.keys().isdisjoint(request.headers)


def _find_canned_acl(request: S3Request) -> str | None:
    """Return the requested canned ACL. An empty header counts as none, as on AWS: Python's s3fs sent it always."""
    return request.headers.get("x-amz-acl") or None


async def ownership_of_new_object(services: Services, request: S3Request) -> NewObjectOwnership:
    """Return owner and ACL of an object that the request writes.

    Raises AccessControlListNotSupported, AccessDenied, InvalidArgument.
    """
    bucket = request.bucket_row
    if not bucket.settings and (COMMON_HEADERS.issuperset(request.amazon) or not has_acl_headers(request)):
        return NewObjectOwnership(bucket.owner_id, None)
    access = access_of(bucket)
    if not access.has_acls:
        require_bucket_owner_acl(request)
        return NewObjectOwnership(bucket.owner_id, None)
    named = _named(request)
    return _build_ownership(request, access, await resolve(services, named) if named else None)


def _build_ownership(request: S3Request, access: BucketAccess, grants: Grants | None) -> NewObjectOwnership:
    bucket = request.bucket_row
    name = _find_canned_acl(request)
    owner_id = request.account_id or ANONYMOUS
    if access.ownership == PREFERRED and name == "bucket-owner-full-control":
        owner_id = bucket.owner_id
    if name is not None:
        grants = _canned_grants(name, owner_id, bucket.owner_id)
    if grants is None:
        return NewObjectOwnership(owner_id, None)
    reject_public_acl(access, grants)
    authorization.authorize_acl(request)
    return NewObjectOwnership(owner_id, _unless_private(grants, owner_id))


def _unless_private(grants: Grants, owner_id: str) -> Grants | None:
    return None if grants == (Grant(owner_id, FULL_CONTROL),) else grants


def _canned_grants(name: str, owner_id: str, bucket_owner_id: str) -> Grants:
    found = canned_grants(name, owner_id, bucket_owner_id)
    if found is None:
        raise InvalidArgument(ArgumentName="x-amz-acl", ArgumentValue=name)
    return found


def require_bucket_owner_acl(request: S3Request) -> None:
    """In a bucket without ACLs, require that requested ACLs change nothing. Raises AccessControlListNotSupported."""
    name = _find_canned_acl(request) or "private"
    if name not in IMPLIED_CANNED_ACLS:
        _canned_grants(name, "", "")
        raise AccessControlListNotSupported()
    if _named(request):
        raise AccessControlListNotSupported()


def reject_public_acl(access: BucketAccess, grants: Grants) -> None:
    """Raise AccessDenied for a public ACL where they are blocked."""
    if access.block.block_acls and any(grant.public for grant in grants):
        raise AccessDenied()


def _named(request: S3Request) -> list[RequestedGrant]:
    """Return the grants in the headers. Raises InvalidArgument, InvalidRequest."""
    found = []
    for header, permission in HEADERS.items():
        value = request.headers.get(header)
        for part in () if value is None else value.split(","):
            kind, sign, grantee = part.strip().partition("=")
            if not sign or kind not in ("id", "uri", "emailAddress"):
                raise InvalidArgument("Argument format not recognized", ArgumentName=header, ArgumentValue=value)
            found.append(RequestedGrant(kind, grantee.strip().strip('"'), permission))
    if found and _find_canned_acl(request):
        raise InvalidRequest("Specifying both Canned ACLs and Header Grants is not allowed")
    return found


async def resolve(services: Services, named: Sequence[RequestedGrant]) -> Grants:
    """Return grants to existing accounts and AWS's groups.

    Raises InvalidArgument, UnresolvableGrantByEmailAddress.
    """
    if len(named) > MAX_GRANTS:
        raise MalformedACLError()
    emails: dict[str, str] = {}
    if any(one.kind == "emailAddress" for one in named):
        emails = {account.email: account.id for account, _ in await services.index.accounts() if account.email}
    grants = []
    for one in named:
        grantee = one.value
        if one.kind == "uri":
            if grantee not in KNOWN_GROUPS:
                raise InvalidArgument("Invalid group uri", ArgumentName="uri", ArgumentValue=grantee)
        elif one.kind == "emailAddress":
            if grantee not in emails:
                raise UnresolvableGrantByEmailAddress()
            grantee = emails[grantee]
        elif await services.index.account(grantee) is None:
            raise InvalidArgument("Invalid id", ArgumentName="CanonicalUser/ID", ArgumentValue=grantee)
        grants.append(Grant(grantee, one.permission))
    return tuple(dict.fromkeys(grants))


async def parse_requested_acl(
    services: Services, request: S3Request, document: bytes, owner_id: str, bucket_owner_id: str
) -> Grants:
    """Return the ACL that PutBucketAcl or PutObjectAcl sets.

    Raises MalformedACLError, and AccessDenied for another owner.
    """
    named = _named(request)
    name = _find_canned_acl(request)
    if document.strip():
        if named or name is not None:
            raise InvalidRequest("This request does not support content")
        return await resolve(services, _document(document, owner_id))
    if name is not None:
        return _canned_grants(name, owner_id, bucket_owner_id)
    if not named:
        raise MalformedACLError()
    return await resolve(services, named)


async def acl_of_new_bucket(services: Services, request: S3Request) -> Grants | None:
    """Return the ACL in the headers of CreateBucket; None when it is private. Raises InvalidArgument."""
    owner_id = request.account_id or ""
    return _unless_private(await parse_requested_acl(services, request, b"", owner_id, owner_id), owner_id)


def _document(document: bytes, owner_id: str) -> list[RequestedGrant]:
    tree = xml.parse(document, "AccessControlPolicy")
    xml.check_children(tree, {"Owner", "AccessControlList"})
    owner = tree.findtext("Owner/ID")
    grants = tree.find("AccessControlList")
    if grants is None:
        raise MalformedACLError()
    if owner is not None and owner != owner_id:
        raise AccessDenied()
    xml.check_children(grants, {"Grant"})
    return [_grant(element) for element in grants]


def _grant(element: Element) -> RequestedGrant:
    grantee, permission = element.find("Grantee"), xml.child_text(element, "Permission")
    if grantee is None or permission not in PERMISSIONS:
        raise MalformedACLError()
    for kind, name in (("id", "ID"), ("uri", "URI"), ("emailAddress", "EmailAddress")):
        value = xml.child_text(grantee, name)
        if value is not None:
            return RequestedGrant(kind, value, permission)
    raise MalformedACLError()


async def display_names(services: Services, request: S3Request, account_ids: Iterable[str]) -> dict[str, str]:
    """Return the display names of accounts; empty for a deleted one."""
    names = {}
    for account_id in account_ids:
        if account_id == request.account_id:
            names[account_id] = request.display_name
        else:
            account = await services.index.account(account_id)
            names[account_id] = "" if account is None else account.display_name
    return names


async def render_acl(services: Services, request: S3Request, owner_id: str, grants: Grants | None) -> bytes:
    """Render an ACL, groups before accounts as Ceph does; AWS documents no order."""
    if grants is None:
        grants = (Grant(owner_id, FULL_CONTROL),)
    people = {owner_id, *(grant.grantee for grant in grants if not grant.grantee.startswith(GROUPS))}
    names = await display_names(services, request, people)
    entries = ""
    for grantee, permission in sorted(grants, key=lambda grant: not grant.grantee.startswith(GROUPS)):
        if grantee.startswith(GROUPS):
            kind, who = "Group", xml.element("URI", grantee)
        else:
            kind = "CanonicalUser"
            who = xml.element("ID", grantee) + xml.optional("DisplayName", names.get(grantee))
        entries += (
            f'<Grant><Grantee xmlns:xsi="{INSTANCE}" xsi:type="{kind}">{who}</Grantee>'
            f"{xml.element('Permission', permission)}</Grant>"
        )
    content = f"{xml.owner_element(owner_id, names.get(owner_id, ''))}<AccessControlList>{entries}</AccessControlList>"
    return xml.document("AccessControlPolicy", content)
