"""The one place that says yes or no. Everything not said yes to here is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from app.access import acl
from app.access.account import account_number as account_number
from app.access.account import arn_of, caller_of
from app.access.acl import Grants
from app.access.bucket_access import BucketAccess, access_of
from app.access.policy import Caller, Decision, Policy, Request
from app.access.policy.variables import Values
from app.access.principal import Principal
from app.index.identity_rows import Identity
from app.index.rows import Bucket

SERVICE_ACTIONS = frozenset({"s3:ListAllMyBuckets", "s3:CreateBucket"})
OF_CREATION = SERVICE_ACTIONS | {
    "s3:PutBucketAcl",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketVersioning",
}
"""What users and sessions may need for a bucket that there is not yet."""
ALWAYS_OWNERS = frozenset({"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"})
"""What a bucket's owner may do whatever its policy says, so that nobody locks himself out for good ("Policies and
permissions in Amazon S3", User Guide). Not so his users."""
OF_UPLOADS = frozenset({"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"})
"""What who began an upload may do with it unless he is denied it ("Multipart upload API and permissions", Amazon S3
User Guide)."""
ASSUME = "sts:AssumeRole"
NO_ACCOUNT = ""
"""The account of somebody who has one, but for whom it does not stand: nothing is owned by it or granted to it."""


class NeedsObject(Exception):
    """A condition asks for what is only known once the object was found."""


class Verdict(Enum):
    """An answer. All but the first two are open: the object's ACL decides, by `authorize_object`, or its tags."""

    YES = 1
    NO = 2
    BY_OBJECT = 3
    BY_OBJECT_OR_POLICY = 4
    """The policy allows it, which counts for objects of the bucket's owner."""
    BY_TAGS = 5
    """The policy asks for the object's tags: ask again when `values` knows them."""
    BY_OBJECT_FOR_ALL = 6
    """As BY_OBJECT, of somebody whose own policies do not allow it: only what the ACL gives to everybody counts."""
    BY_OBJECT_FOR_ALL_OR_POLICY = 7
    """The same as BY_OBJECT_OR_POLICY."""
    BY_UPLOAD = 8
    """Who began the upload may, and nobody else."""

    def __bool__(self) -> bool:
        return self is Verdict.YES


_FOR_ALL = {
    Verdict.BY_OBJECT_FOR_ALL: Verdict.BY_OBJECT,
    Verdict.BY_OBJECT_FOR_ALL_OR_POLICY: Verdict.BY_OBJECT_OR_POLICY,
}


def no_values(key: str) -> None:
    """The condition keys of a request that has none."""
    return


def authorize(
    account_id: str | None,
    action: str,
    bucket: Bucket | None,
    key: str | None = None,
    values: Values = no_values,
    *,
    principal: Principal | None = None,
    name: str | None = None,
) -> Verdict:
    """Whether an account (None: anonymous) may do `action`, on `bucket` or its object `key` if the action is on one.

    `principal` is who acts for the account, None for the account itself; `name` that of a bucket which there need not
    be. `values` are the condition keys of the request, in lower case; it may raise NeedsObject.
    """
    if principal is not None and account_id is not None:
        return _authorize_principal(principal, account_id, action, bucket, key, values, name)
    if bucket is None:
        return Verdict.YES if account_id is not None and action in SERVICE_ACTIONS else Verdict.NO
    if not bucket.settings:  # as AWS makes new buckets: all is the owner's, and nobody else may do anything
        return Verdict.YES if account_id is not None and account_id == bucket.owner_id else Verdict.NO
    access = access_of(bucket)
    try:
        said = _policy_says(access, _caller(account_id), action, bucket, key, values)
    except NeedsObject:
        return Verdict.BY_TAGS
    owner = account_id is not None and account_id == bucket.owner_id
    if owner and action in ALWAYS_OWNERS:
        return Verdict.YES
    return _decide(access, account_id, action, bucket, key, said)


def _decide(
    access: BucketAccess, account_id: str | None, action: str, bucket: Bucket, key: str | None, said: Decision
) -> Verdict:
    """What follows from the bucket's owner, its ACL, and what its policy said."""
    owner = account_id is not None and account_id == bucket.owner_id
    if said is Decision.DENY:
        return Verdict.NO
    if said is Decision.ALLOW and access.block.restrict and access.public and not owner:
        said = Decision.SILENT
    if access.has_acls and key is not None and action in acl.OF_OBJECT:
        return Verdict.BY_OBJECT_OR_POLICY if said is Decision.ALLOW else Verdict.BY_OBJECT
    if owner or said is Decision.ALLOW:
        return Verdict.YES
    if may_by_acl(account_id, action, bucket):
        return Verdict.YES
    return Verdict.BY_UPLOAD if account_id is not None and action in OF_UPLOADS else Verdict.NO


def _authorize_principal(
    principal: Principal,
    account_id: str,
    action: str,
    bucket: Bucket | None,
    key: str | None,
    values: Values,
    name: str | None,
) -> Verdict:
    """`authorize` for a user or a session. "Policy evaluation logic", IAM User Guide.

    In another account's bucket his own policies and the bucket's must allow it, in his own account's one of them: the
    bucket's then just to him or to everybody, since what it leaves to the account is left to the account's policies.
    """
    try:
        own = principal.says(action, resource_of(bucket, key, name), values)
        if own is Decision.DENY:
            return Verdict.NO
        if bucket is None:
            return Verdict.YES if own is Decision.ALLOW and action in OF_CREATION else Verdict.NO
        access = access_of(bucket)
        said = _policy_says(access, principal.caller, action, bucket, key, values)
        if own is Decision.ALLOW or said is Decision.DENY:
            return _decide(access, account_id, action, bucket, key, said)
        if account_id != bucket.owner_id:
            return Verdict.NO
        return _to_him_alone(access, principal, action, bucket, key, values)
    except NeedsObject:
        return Verdict.BY_TAGS


def _to_him_alone(
    access: BucketAccess, principal: Principal, action: str, bucket: Bucket, key: str | None, values: Values
) -> Verdict:
    """What a bucket of his account gives to a principal whose own policies are silent."""
    said = _policy_says(access, principal.caller.alone, action, bucket, key, values, gifts=True)
    if said is Decision.DENY:
        return Verdict.NO
    if access.has_acls and key is not None and action in acl.OF_OBJECT:
        allowed = said is Decision.ALLOW
        return Verdict.BY_OBJECT_FOR_ALL_OR_POLICY if allowed else Verdict.BY_OBJECT_FOR_ALL
    if said is Decision.ALLOW or may_by_acl(NO_ACCOUNT, action, bucket):
        return Verdict.YES
    return Verdict.NO


def authorize_identity(
    account_id: str, principal: Principal | None, action: str, resource: str, values: Values = no_values
) -> bool:
    """Whether an account, or who acts for it, may do `action` (of IAM or STS) to what is the account's own."""
    return principal is None or principal.says(action, resource, values) is Decision.ALLOW


def authorize_key(
    account_id: str | None,
    principal: Principal | None,
    action: str,
    key: str,
    values: Values = no_values,
    *,
    of_aws: bool = False,
) -> bool:
    """Whether a caller may use a key of the ring, named by its ARN, for an object.

    An account may, users and sessions if their own policies allow it, and nobody without a name. What nobody has to
    allow (`of_aws`: the key that takes the place of AWS's own) they need only not forbid, as its policy lets everybody
    of an account use it through S3 ("AWS managed keys", AWS KMS Developer Guide).
    """
    if principal is None:
        return account_id is not None
    own = principal.says(action, key, values)
    return own is Decision.ALLOW or (of_aws and own is Decision.SILENT)


def authorize_assume(
    principal: Principal, account_id: str, role: Identity, trust: Policy, values: Values = no_values
) -> bool:
    """Whether a user or a session may assume a role: the role must trust him, and his own policies must allow it.

    Within one account it is enough that the role trusts just him. Raises nothing.
    """
    own = principal.says(ASSUME, arn_of(role), values)
    said = trust.decide(Request(principal.caller, ASSUME, arn_of(role), values))
    if Decision.DENY in (own, said) or said is not Decision.ALLOW:
        return False
    if own is Decision.ALLOW:
        return True
    alone = trust.decide(Request(principal.caller.alone, ASSUME, arn_of(role), values), gifts=True)
    return account_id == role.account_id and alone is Decision.ALLOW


def resource_of(bucket: Bucket | None, key: str | None, name: str | None = None) -> str:
    """The ARN of a bucket or an object as policies name it."""
    if bucket is not None:
        name = bucket.name
    return f"arn:aws:s3:::{name or '*'}" if key is None else f"arn:aws:s3:::{name}/{key}"


def pays(account_id: str | None, bucket: Bucket, payer: str | None) -> bool | None:
    """Whether an account pays for its request where the requester pays; None where the owner does, or is the account.

    `payer` is the request's word for it ("Using Requester Pays buckets", Amazon S3 User Guide).
    """
    if not access_of(bucket).requester_pays or account_id == bucket.owner_id:
        return None
    return account_id is not None and payer == "requester"


def may_while_writing(
    account_id: str | None,
    action: str,
    bucket: Bucket,
    key: str,
    values: Values,
    principal: Principal | None = None,
) -> bool:
    """Whether who may put an object may give it, while it is written, what is otherwise given by `action`.

    The writer owns what he writes, so that nothing but a policy speaks against it; but who may write only because a
    policy says so needs it to say this too (API reference, PutObject, "s3:PutObjectAcl" and "s3:PutObjectTagging").
    """
    caller = _caller(account_id)
    if principal is not None:
        own = principal.says(action, resource_of(bucket, key), values)
        if own is Decision.DENY or (own is Decision.SILENT and account_id != bucket.owner_id):
            return False
        caller = principal.caller
        if own is Decision.SILENT:
            alone = _policy_says(access_of(bucket), caller.alone, action, bucket, key, values, gifts=True)
            return (
                alone is Decision.ALLOW
                and _policy_says(access_of(bucket), caller, action, bucket, key, values) is not Decision.DENY
            )
    if not bucket.settings:
        return account_id is not None and account_id == bucket.owner_id
    access = access_of(bucket)
    said = _policy_says(access, caller, action, bucket, key, values)
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


def rests_on_acl(account_id: str | None, action: str, bucket: Bucket, key: str | None, values: Values) -> bool:
    """Whether a right that an account was found to have is given by nothing but an ACL."""
    access = access_of(bucket)
    if not access.has_acls or account_id == bucket.owner_id:
        return False
    try:
        return _policy_says(access, _caller(account_id), action, bucket, key, values) is not Decision.ALLOW
    except NeedsObject:
        return False


def authorize_object(
    account_id: str | None, action: str, bucket: Bucket, owner_id: str, grants: Grants | None, verdict: Verdict
) -> bool:
    """What `authorize` left open, now that the object is known: its owner and its ACL (None: all is its owner's)."""
    if verdict in _FOR_ALL:
        account_id, verdict = NO_ACCOUNT, _FOR_ALL[verdict]
    if verdict not in (Verdict.BY_OBJECT, Verdict.BY_OBJECT_OR_POLICY):
        return verdict is Verdict.YES
    if account_id is not None and account_id == owner_id:
        return True
    if verdict is Verdict.BY_OBJECT_OR_POLICY and owner_id == bucket.owner_id:
        return True
    ignore = access_of(bucket).block.ignore_acls
    return grants is not None and acl.allows(grants, account_id, acl.OF_OBJECT[action], ignore_public=ignore)


def _caller(account_id: str | None) -> Caller | None:
    return None if account_id is None else caller_of(account_id)


def _policy_says(
    access: BucketAccess,
    caller: Caller | None,
    action: str,
    bucket: Bucket,
    key: str | None,
    values: Values,
    *,
    gifts: bool = False,
) -> Decision:
    if access.closed:
        return Decision.DENY
    if access.policy is None:
        return Decision.SILENT
    resource = bucket.name if key is None else f"{bucket.name}/{key}"
    return access.policy.decide(Request(caller, action, resource, values), gifts=gifts)


def authorize_service(
    service: str, action: str, bucket: Bucket, key: str, values: Mapping[str, str], group: str = ""
) -> bool:
    """Whether a service of the gateway may do `action` to an object on behalf of somebody who is named in `values`.

    `values` are the condition keys, in lower case. The policy must name the service, or where ACLs hold, the bucket's
    must let `group` do it.
    """
    access = access_of(bucket)
    if access.closed:
        return False
    said = Decision.SILENT
    if access.policy is not None:
        known = {**values, "aws:principalisawsservice": "true", "aws:principalservicename": service}

        def value(name: str) -> tuple[str, ...] | None:
            return (known[name],) if name in known else None

        caller = Caller("", "", "", service=service)
        said = access.policy.decide(Request(caller, action, f"{bucket.name}/{key}", value))
    if said is not Decision.SILENT or not group or not access.has_acls or access.acl is None:
        return said is Decision.ALLOW
    return acl.allows(access.acl, group, acl.OF_BUCKET[action], ignore_public=True)
