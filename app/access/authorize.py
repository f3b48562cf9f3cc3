"""The one place that says yes or no. Everything not said yes to here is refused."""

from __future__ import annotations

import hashlib
from enum import Enum
from functools import lru_cache

from app.access import acl
from app.access.acl import Grants
from app.access.bucket_access import BucketAccess, access_of
from app.access.policy import Caller, Decision, Request
from app.access.policy.variables import Values
from app.index.rows import Bucket

SERVICE_ACTIONS = frozenset({"s3:ListAllMyBuckets", "s3:CreateBucket"})
ALWAYS_OWNERS = frozenset({"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"})
"""What a bucket's owner may do whatever its policy says, so that nobody locks himself out for good ("Policies and
permissions in Amazon S3", User Guide)."""


class NeedsObject(Exception):
    """A condition asks for what is only known once the object was found."""


class Verdict(Enum):
    """An answer. The last three are open: only the object's own ACL decides, by `authorize_object`, or its tags."""

    YES = 1
    NO = 2
    BY_OBJECT = 3
    BY_OBJECT_OR_POLICY = 4
    """The policy allows it, which counts for objects of the bucket's owner."""
    BY_TAGS = 5
    """The policy asks for the object's tags: ask again when `values` knows them."""

    def __bool__(self) -> bool:
        return self is Verdict.YES


def no_values(key: str) -> None:
    """The condition keys of a request that has none."""
    return


def authorize(
    account_id: str | None, action: str, bucket: Bucket | None, key: str | None = None, values: Values = no_values
) -> Verdict:
    """Whether an account (None: anonymous) may do `action`, on `bucket` or its object `key` if the action is on one.

    `values` are the condition keys of the request, in lower case; it may raise NeedsObject.
    """
    if bucket is None:
        return Verdict.YES if account_id is not None and action in SERVICE_ACTIONS else Verdict.NO
    if not bucket.settings:  # as AWS makes new buckets: all is the owner's, and nobody else may do anything
        return Verdict.YES if account_id is not None and account_id == bucket.owner_id else Verdict.NO
    access = access_of(bucket)
    try:
        said = _policy_says(access, account_id, action, bucket, key, values)
    except NeedsObject:
        return Verdict.BY_TAGS
    owner = account_id is not None and account_id == bucket.owner_id
    if owner and action in ALWAYS_OWNERS:
        return Verdict.YES
    if said is Decision.DENY:
        return Verdict.NO
    if said is Decision.ALLOW and access.block.restrict and access.public and not owner:
        said = Decision.SILENT
    if access.has_acls and key is not None and action in acl.OF_OBJECT:
        return Verdict.BY_OBJECT_OR_POLICY if said is Decision.ALLOW else Verdict.BY_OBJECT
    if owner or said is Decision.ALLOW:
        return Verdict.YES
    return Verdict.YES if may_by_acl(account_id, action, bucket) else Verdict.NO


def pays(account_id: str | None, bucket: Bucket, payer: str | None) -> bool | None:
    """Whether an account pays for its request where the requester pays; None where the owner does, or is the account.

    `payer` is the request's word for it ("Using Requester Pays buckets", Amazon S3 User Guide).
    """
    if not access_of(bucket).requester_pays or account_id == bucket.owner_id:
        return None
    return account_id is not None and payer == "requester"


def may_while_writing(account_id: str | None, action: str, bucket: Bucket, key: str, values: Values) -> bool:
    """Whether who may put an object may give it, while it is written, what is otherwise given by `action`.

    The writer owns what he writes, so that nothing but a policy speaks against it; but who may write only because a
    policy says so needs it to say this too (API reference, PutObject, "s3:PutObjectAcl" and "s3:PutObjectTagging").
    """
    if not bucket.settings:
        return account_id is not None and account_id == bucket.owner_id
    access = access_of(bucket)
    said = _policy_says(access, account_id, action, bucket, key, values)
    if said is Decision.DENY:
        return False
    if said is Decision.ALLOW and not (access.block.restrict and access.public):
        return True
    return may_by_acl(account_id, "s3:PutObject", bucket)


def may_by_acl(account_id: str | None, action: str, bucket: Bucket) -> bool:
    """Whether an account is the bucket's owner, or its ACL allows the account to do `action`."""
    if account_id is not None and account_id == bucket.owner_id:
        return True
    access = access_of(bucket)
    permission = acl.OF_BUCKET.get(action)
    if permission is None or not access.has_acls or access.acl is None:
        return False
    return acl.allows(access.acl, account_id, permission, ignore_public=access.block.ignore_acls)


def authorize_object(
    account_id: str | None, action: str, bucket: Bucket, owner_id: str, grants: Grants | None, verdict: Verdict
) -> bool:
    """What `authorize` left open, now that the object is known: its owner and its ACL (None: all is its owner's)."""
    if verdict not in (Verdict.BY_OBJECT, Verdict.BY_OBJECT_OR_POLICY):
        return verdict is Verdict.YES
    if account_id is not None and account_id == owner_id:
        return True
    if verdict is Verdict.BY_OBJECT_OR_POLICY and owner_id == bucket.owner_id:
        return True
    ignore = access_of(bucket).block.ignore_acls
    return grants is not None and acl.allows(grants, account_id, acl.OF_OBJECT[action], ignore_public=ignore)


def _policy_says(
    access: BucketAccess, account_id: str | None, action: str, bucket: Bucket, key: str | None, values: Values
) -> Decision:
    if access.closed:
        return Decision.DENY
    if access.policy is None:
        return Decision.SILENT
    resource = bucket.name if key is None else f"{bucket.name}/{key}"
    caller = None if account_id is None else caller_of(account_id)
    return access.policy.decide(Request(caller, action, resource, values))


@lru_cache(maxsize=4096)
def caller_of(account_id: str) -> Caller:
    """An account as policies name it."""
    number = account_number(account_id)
    return Caller(account_id, number, f"arn:aws:iam::{number}:root")


def account_number(account_id: str) -> str:
    """The number of 12 digits that ARNs name an account by: its id if it is one, else made from the id."""
    if len(account_id) == 12 and account_id.isascii() and account_id.isdigit():
        return account_id
    digest = hashlib.sha256(b"account number:" + account_id.encode()).digest()
    return f"{int.from_bytes(digest[:8], 'big') % 10**12:012d}"
