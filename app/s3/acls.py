"""What requests say of access control lists: canned, granted by header, or as a document; and how they are shown.

"Access control list (ACL) overview", Amazon S3 User Guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import Element

from app.access.acl import (
    FULL_CONTROL,
    GROUPS,
    KNOWN_GROUPS,
    MAX_GRANTS,
    PERMISSIONS,
    Grant,
    Grants,
    canned,
)
from app.access.bucket_access import PREFERRED, BucketAccess, access_of
from app.errors import NotNow
from app.s3 import rights, xml
from app.s3.errors import (
    AccessControlListNotSupported,
    AccessDenied,
    InvalidArgument,
    InvalidRequest,
    MalformedACLError,
    UnresolvableGrantByEmailAddress,
)
from app.s3.refused import USUAL
from app.s3.request import S3Request

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

ANONYMOUS = "65a011a29cdf8ec533ec3d1ccaae921c"
"""The canonical id that AWS gives to objects that nobody signed for."""
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
HEADERS = {
    "x-amz-grant-full-control": "FULL_CONTROL",
    "x-amz-grant-read": "READ",
    "x-amz-grant-write": "WRITE",
    "x-amz-grant-read-acp": "READ_ACP",
    "x-amz-grant-write-acp": "WRITE_ACP",
}
HELD_ANYWAY = frozenset({"private", "bucket-owner-full-control"})
"""Canned ACLs that only say what holds in a bucket without ACLs: the owner has everything and nobody else anything.

AWS refuses `private` (User Guide, "Controlling ownership of objects and disabling ACLs"), which rclone before 1.61
sends with every write."""


class Written(NamedTuple):
    """Whose an object that is written will be, and its ACL; None: all is its owner's."""

    owner_id: str
    grants: Grants | None


class Named(NamedTuple):
    """A grantee as a request names it: `id`, `uri` or `emailAddress`, and its value."""

    kind: str
    value: str
    permission: str


def in_headers(request: S3Request) -> bool:
    """Whether the headers say anything of an ACL."""
    return _asked_canned(request) is not None or not HEADERS.keys().isdisjoint(request.headers)


def _asked_canned(request: S3Request) -> str | None:
    """The canned ACL that a request asks for. An empty header is none, as on AWS: s3fs of Python sent it with all."""
    return request.headers.get("x-amz-acl") or None


def written_now(request: S3Request) -> Written:
    """What becomes of an object that the request writes. Raises NotNow when accounts must be looked up."""
    bucket = request.bucket_row
    if not bucket.settings and (USUAL.issuperset(request.amazon) or not in_headers(request)):
        return Written(bucket.owner_id, None)
    access = access_of(bucket)
    if not access.has_acls:
        check_held_anyway(request)
        return Written(bucket.owner_id, None)
    if _named(request):
        raise NotNow
    return _written(request, access, None)


async def written(gateway: Gateway, request: S3Request) -> Written:
    """The same, with accounts looked up. Raises AccessControlListNotSupported, AccessDenied, InvalidArgument."""
    try:
        return written_now(request)
    except NotNow:
        return _written(request, access_of(request.bucket_row), await resolve(gateway, _named(request)))


def _written(request: S3Request, access: BucketAccess, given: Grants | None) -> Written:
    bucket = request.bucket_row
    name = _asked_canned(request)
    owner_id = request.account_id or ANONYMOUS
    if access.ownership == PREFERRED and name == "bucket-owner-full-control":
        owner_id = bucket.owner_id
    if name is not None:
        given = _canned(name, owner_id, bucket.owner_id)
    if given is None:
        return Written(owner_id, None)
    check_public(access, given)
    rights.check_put_acl(request)
    return Written(owner_id, _unless_private(given, owner_id))


def _unless_private(grants: Grants, owner_id: str) -> Grants | None:
    return None if grants == (Grant(owner_id, FULL_CONTROL),) else grants


def _canned(name: str, owner_id: str, bucket_owner_id: str) -> Grants:
    found = canned(name, owner_id, bucket_owner_id)
    if found is None:
        raise InvalidArgument(ArgumentName="x-amz-acl", ArgumentValue=name)
    return found


def check_held_anyway(request: S3Request) -> None:
    """In a bucket without ACLs. Raises AccessControlListNotSupported for an ACL that says what does not hold."""
    name = _asked_canned(request) or "private"
    if name not in HELD_ANYWAY:
        _canned(name, "", "")
        raise AccessControlListNotSupported()
    if _named(request):
        raise AccessControlListNotSupported()


def check_public(access: BucketAccess, grants: Grants) -> None:
    """Raises AccessDenied for a public ACL where they are blocked."""
    if access.block.block_acls and any(grant.public for grant in grants):
        raise AccessDenied()


def _named(request: S3Request) -> list[Named]:
    """The grants in the headers. Raises InvalidArgument, InvalidRequest."""
    found = []
    for header, permission in HEADERS.items():
        value = request.headers.get(header)
        for part in () if value is None else value.split(","):
            kind, sign, grantee = part.strip().partition("=")
            if not sign or kind not in ("id", "uri", "emailAddress"):
                raise InvalidArgument("Argument format not recognized", ArgumentName=header, ArgumentValue=value)
            found.append(Named(kind, grantee.strip().strip('"'), permission))
    if found and _asked_canned(request):
        raise InvalidRequest("Specifying both Canned ACLs and Header Grants is not allowed")
    return found


async def resolve(gateway: Gateway, named: Sequence[Named]) -> Grants:
    """Grants to accounts that exist and to AWS's groups. Raises InvalidArgument, UnresolvableGrantByEmailAddress."""
    if len(named) > MAX_GRANTS:
        raise MalformedACLError()
    emails: dict[str, str] = {}
    if any(one.kind == "emailAddress" for one in named):
        emails = {account.email: account.id for account, _ in await gateway.index.accounts() if account.email}
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
        elif await gateway.index.account(grantee) is None:
            raise InvalidArgument("Invalid id", ArgumentName="CanonicalUser/ID", ArgumentValue=grantee)
        grants.append(Grant(grantee, one.permission))
    return tuple(dict.fromkeys(grants))


async def asked(gateway: Gateway, request: S3Request, document: bytes, owner_id: str, bucket_owner_id: str) -> Grants:
    """The ACL that PutBucketAcl or PutObjectAcl is to set. Raises MalformedACLError, AccessDenied for another owner."""
    named = _named(request)
    name = _asked_canned(request)
    if document.strip():
        if named or name is not None:
            raise InvalidRequest("This request does not support content")
        return await resolve(gateway, _document(document, owner_id))
    if name is not None:
        return _canned(name, owner_id, bucket_owner_id)
    if not named:
        raise MalformedACLError()
    return await resolve(gateway, named)


async def of_new_bucket(gateway: Gateway, request: S3Request) -> Grants | None:
    """The ACL in the headers of CreateBucket, None when it is private. Raises InvalidArgument."""
    owner_id = request.account_id or ""
    return _unless_private(await asked(gateway, request, b"", owner_id, owner_id), owner_id)


def _document(document: bytes, owner_id: str) -> list[Named]:
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


def _grant(element: Element) -> Named:
    grantee, permission = element.find("Grantee"), xml.text_of(element, "Permission")
    if grantee is None or permission not in PERMISSIONS:
        raise MalformedACLError()
    for kind, name in (("id", "ID"), ("uri", "URI"), ("emailAddress", "EmailAddress")):
        value = xml.text_of(grantee, name)
        if value is not None:
            return Named(kind, value, permission)
    raise MalformedACLError()


async def display_names(gateway: Gateway, request: S3Request, account_ids: Iterable[str]) -> dict[str, str]:
    """The display names of accounts, empty for one that there is not any more."""
    names = {}
    for account_id in account_ids:
        if account_id == request.account_id:
            names[account_id] = request.display_name
        else:
            account = await gateway.index.account(account_id)
            names[account_id] = "" if account is None else account.display_name
    return names


async def shown(gateway: Gateway, request: S3Request, owner_id: str, grants: Grants | None) -> bytes:
    """The document that shows an ACL, groups before accounts as Ceph has them; AWS documents no order."""
    if grants is None:
        grants = (Grant(owner_id, FULL_CONTROL),)
    people = {owner_id, *(grant.grantee for grant in grants if not grant.grantee.startswith(GROUPS))}
    names = await display_names(gateway, request, people)
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
    content = f"{xml.owner(owner_id, names.get(owner_id, ''))}<AccessControlList>{entries}</AccessControlList>"
    return xml.document("AccessControlPolicy", content)
