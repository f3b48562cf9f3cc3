"""Access control lists: the permissions granted to others than the owner.

"Access control list (ACL) overview", Amazon S3 User Guide. A grantee is an account (by its canonical id) or one of
AWS's groups (by its URI).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

GROUPS = "http://acs.amazonaws.com/groups/"
ALL_USERS = GROUPS + "global/AllUsers"
AUTHENTICATED_USERS = GROUPS + "global/AuthenticatedUsers"
LOG_DELIVERY = GROUPS + "s3/LogDelivery"
PUBLIC = frozenset({ALL_USERS, AUTHENTICATED_USERS})
KNOWN_GROUPS = PUBLIC | {LOG_DELIVERY}

FULL_CONTROL, READ, WRITE, READ_ACP, WRITE_ACP = "FULL_CONTROL", "READ", "WRITE", "READ_ACP", "WRITE_ACP"
PERMISSIONS = (FULL_CONTROL, READ, WRITE, READ_ACP, WRITE_ACP)
MAX_GRANTS = 100
"""Grants of one ACL."""

OF_BUCKET = {
    "s3:ListBucket": READ,
    "s3:ListBucketVersions": READ,
    "s3:ListBucketMultipartUploads": READ,
    "s3:PutObject": WRITE,
    "s3:DeleteObject": WRITE,
    "s3:GetBucketAcl": READ_ACP,
    "s3:PutBucketAcl": WRITE_ACP,
}
"""The actions that a bucket's ACL can allow, and the permission for each."""
OF_OBJECT = {
    "s3:GetObject": READ,
    "s3:GetObjectVersion": READ,
    "s3:GetObjectAttributes": READ,
    "s3:GetObjectVersionAttributes": READ,
    "s3:GetObjectTorrent": READ,
    "s3:GetObjectAcl": READ_ACP,
    "s3:GetObjectVersionAcl": READ_ACP,
    "s3:PutObjectAcl": WRITE_ACP,
    "s3:PutObjectVersionAcl": WRITE_ACP,
}
"""The same for an object's ACL."""


class Grant(NamedTuple):
    """A permission and its grantee: a canonical id, or the URI of a group."""

    grantee: str
    permission: str

    @property
    def public(self) -> bool:
        """It is for everybody, or for everybody with an account."""
        return self.grantee in PUBLIC


Grants = tuple[Grant, ...]


def from_json(found: Any) -> Grants:
    """Parse stored grants. Raises ValueError or TypeError."""
    grants = tuple(Grant(str(grantee), str(permission)) for grantee, permission in found)
    if any(grant.permission not in PERMISSIONS for grant in grants):
        raise ValueError("no such permission")
    return grants


def to_json(grants: Iterable[Grant]) -> list[list[str]]:
    """Return grants as they are stored."""
    return [list(grant) for grant in grants]


def allows(grants: Sequence[Grant], account_id: str | None, permission: str, *, ignore_public: bool) -> bool:
    """Return whether an ACL grants a permission to an account (None: anonymous)."""
    for grant in grants:
        if grant.permission not in (permission, FULL_CONTROL):
            continue
        if grant.public:
            if not ignore_public and (grant.grantee == ALL_USERS or account_id is not None):
                return True
        elif account_id is not None and grant.grantee == account_id:
            return True
    return False


def canned_grants(name: str, owner_id: str, bucket_owner_id: str) -> Grants | None:
    """Return the grants of a canned ACL; None if the name is unknown."""
    full = Grant(owner_id, FULL_CONTROL)
    more: dict[str, tuple[Grant, ...]] = {
        "private": (),
        "public-read": (Grant(ALL_USERS, READ),),
        "public-read-write": (Grant(ALL_USERS, READ), Grant(ALL_USERS, WRITE)),
        "authenticated-read": (Grant(AUTHENTICATED_USERS, READ),),
        "bucket-owner-read": (Grant(bucket_owner_id, READ),),
        "bucket-owner-full-control": (Grant(bucket_owner_id, FULL_CONTROL),),
        "log-delivery-write": (Grant(LOG_DELIVERY, WRITE), Grant(LOG_DELIVERY, READ_ACP)),
        "aws-exec-read": (),
    }
    if name not in more:
        return None
    return (full, *(grant for grant in more[name] if grant.grantee != owner_id))
