"""The one place that allows. Everything that it does not allow is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sluice_s3.app.access import acl
from sluice_s3.app.access.account import account_number as account_number
from sluice_s3.app.access.account import arn_of, caller_of
from sluice_s3.app.access.acl import Grants
from sluice_s3.app.access.bucket_access import BucketAccess, access_of
from sluice_s3.app.access.policy import Caller, Decision, Policy, Request, Work
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import Identity

SERVICE_ACTIONS = frozenset({"s3:ListAllMyBuckets", "s3:CreateBucket"})
OF_CREATION = SERVICE_ACTIONS | {
    "s3:PutBucketAcl",
    "s3:PutBucketObjectLockConfiguration",
    "s3:PutBucketOwnershipControls",
    "s3:PutBucketVersioning",
    "s3:TagResource",
}
"""Actions that users and sessions may need for a bucket that does not exist yet."""
ALWAYS_OWNERS = frozenset({"s3:GetBucketPolicy", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"})
"""Actions that no bucket policy denies the owner, to prevent a lockout.

"Policies and permissions in Amazon S3", User Guide. Does not apply to the owner's users.
"""
OF_UPLOADS = frozenset({"s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"})
"""Actions on an upload that its initiator may do unless denied.

"Multipart upload API and permissions", Amazon S3 User Guide.
"""
ASSUME = "sts:AssumeRole"
NO_ACCOUNT = ""
"""Stands for an account whose rights do not count. It owns nothing and has no grants."""


class ConditionNotLoaded(Exception):
    """A condition needs a value that is known only once the object is found."""


class Verdict(Enum):
    """The result of an authorization. All but YES and NO are open until the object's ACL or tags are known.

    `authorize_object` resolves the ones that depend on the ACL.
    """

    YES = 1
    NO = 2
    BY_OBJECT = 3
    BY_OBJECT_OR_POLICY = 4
    """The policy allows it, which counts for objects of the bucket's owner."""
    BY_TAGS = 5
    """The policy needs the object's tags: authorize again when `values` has them."""
    BY_OBJECT_FOR_ALL = 6
    """As BY_OBJECT, without an allow of the principal's own policies. Only public grants of the ACL count."""
    BY_OBJECT_FOR_ALL_OR_POLICY = 7
    """The same as BY_OBJECT_OR_POLICY."""
    BY_UPLOAD = 8
    """Only the initiator of the upload may."""

    def __bool__(self) -> bool:
        return self is Verdict.YES


_FOR_ALL = {
    Verdict.BY_OBJECT_FOR_ALL: Verdict.BY_OBJECT,
    Verdict.BY_OBJECT_FOR_ALL_OR_POLICY: Verdict.BY_OBJECT_OR_POLICY,
}


def no_values(key: str) -> None:
    """Return no value, for the condition keys of a request without any."""
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
    work: Work | None = None,
) -> Verdict:
    """Return the verdict on `action` by an account (None: anonymous) for `bucket` or its object.

    `principal` acts for the account, None: the account itself. `name` is that of a bucket that need not exist. `values`
    returns the condition keys of the request, in lower case; it may raise ConditionNotLoaded. `work` bounds the cost of
    all policies together; above it the result is NO.
    """
    if principal is not None and account_id is not None:
        return _authorize_principal(principal, account_id, action, bucket, key, values, name, work or Work())
    if bucket is None:
        return Verdict.YES if account_id is not None and action in SERVICE_ACTIONS else Verdict.NO
    if not bucket.settings:  # like a new bucket on AWS: everything is the owner's, and others may do nothing
        return Verdict.YES if account_id is not None and account_id == bucket.owner_id else Verdict.NO
    access = access_of(bucket)
    try:
        decision = _evaluate_policy(access, _caller(account_id), action, bucket, key, values, work)
    except ConditionNotLoaded:
        return Verdict.BY_TAGS
    owner = account_id is not None and account_id == bucket.owner_id
    if owner and action in ALWAYS_OWNERS:
        return Verdict.YES
    return _decide(access, account_id, action, bucket, key, decision)


def _decide(
    access: BucketAccess, account_id: str | None, action: str, bucket: Bucket, key: str | None, decision: Decision
) -> Verdict:
    """Combine the bucket's owner, its ACL and the decision of its policy."""
    owner = account_id is not None and account_id == bucket.owner_id
    if decision is Decision.DENY:
        return Verdict.NO
    if decision is Decision.ALLOW and access.block.restrict and access.public and not owner:
        decision = Decision.SILENT
    if access.has_acls and key is not None and action in acl.OF_OBJECT:
        return Verdict.BY_OBJECT_OR_POLICY if decision is Decision.ALLOW else Verdict.BY_OBJECT
    if owner or decision is Decision.ALLOW:
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
    work: Work,
) -> Verdict:
    """Authorize a user or a session. "Policy evaluation logic", IAM User Guide.

    In another account's bucket both the principal's policies and the bucket's must allow it, in its own account's
    bucket one of them. The bucket's policy must then name this principal or everybody: what it leaves to the account is
    left to the account's policies.
    """
    try:
        own = principal.decide(action, resource_of(bucket, key, name), values, work)
        if own is Decision.DENY:
            return Verdict.NO
        if bucket is None:
            return Verdict.YES if own is Decision.ALLOW and action in OF_CREATION else Verdict.NO
        access = access_of(bucket)
        decision = _evaluate_policy(access, principal.caller, action, bucket, key, values, work)
        if own is Decision.ALLOW or decision is Decision.DENY:
            return _decide(access, account_id, action, bucket, key, decision)
        if account_id != bucket.owner_id:
            return Verdict.NO
        return _to_him_alone(access, principal, action, bucket, key, values, work)
    except ConditionNotLoaded:
        return Verdict.BY_TAGS


def _to_him_alone(
    access: BucketAccess,
    principal: Principal,
    action: str,
    bucket: Bucket,
    key: str | None,
    values: Values,
    work: Work,
) -> Verdict:
    """Return the rights that a bucket grants directly to a principal of its account.

    Used when the principal's own policies neither allow nor deny.
    """
    decision = _evaluate_policy(access, principal.caller.alone, action, bucket, key, values, work, gifts=True)
    if decision is Decision.DENY:
        return Verdict.NO
    if access.has_acls and key is not None and action in acl.OF_OBJECT:
        allowed = decision is Decision.ALLOW
        return Verdict.BY_OBJECT_FOR_ALL_OR_POLICY if allowed else Verdict.BY_OBJECT_FOR_ALL
    if decision is Decision.ALLOW or may_by_acl(NO_ACCOUNT, action, bucket):
        return Verdict.YES
    return Verdict.NO


def authorize_identity(
    account_id: str,
    principal: Principal | None,
    action: str,
    resource: str,
    values: Values = no_values,
    work: Work | None = None,
) -> bool:
    """Return whether a caller may do an IAM or STS `action` within its account.

    `work` is the budget of several decisions together.
    """
    return principal is None or principal.decide(action, resource, values, work) is Decision.ALLOW


def authorize_admin(
    account_id: str, first_account: str, principal: Principal | None, action: str, values: Values = no_values
) -> bool:
    """Return whether a caller may do an action of `app.access.admin_actions`, which has the resource `*`.

    Only callers of the first account may: it administers the gateway.
    """
    if not first_account or account_id != first_account:
        return False
    return authorize_identity(account_id, principal, action, "*", values)


def authorize_key(
    account_id: str | None,
    principal: Principal | None,
    action: str,
    key: str,
    values: Values = no_values,
    *,
    of_aws: bool = False,
    work: Work | None = None,
) -> bool:
    """Return whether a caller may use a key of the key ring for an object.

    `key` is its ARN. An account may; users and sessions may if their own policies allow it; anonymous callers may not.
    With `of_aws` (the key in place of AWS's own) their policies need only not deny it, as the policy of that key lets
    everybody of an account use it through S3 ("AWS managed keys", AWS KMS Developer Guide).
    """
    if principal is None:
        return account_id is not None
    own = principal.decide(action, key, values, work)
    return own is Decision.ALLOW or (of_aws and own is Decision.SILENT)


def authorize_assume(
    principal: Principal, account_id: str, role: Identity, trust: Policy, values: Values = no_values
) -> bool:
    """Return whether a user or session may assume a role.

    The role must trust it, and its own policies must allow it. Within one account it is enough that the role trusts
    this principal by name. Raises nothing.
    """
    work = Work()
    own = principal.decide(ASSUME, arn_of(role), values, work)
    decision = trust.decide(Request(principal.caller, ASSUME, arn_of(role), values), work)
    if Decision.DENY in (own, decision) or decision is not Decision.ALLOW:
        return False
    if own is Decision.ALLOW:
        return True
    alone = trust.decide(Request(principal.caller.alone, ASSUME, arn_of(role), values), work, gifts=True)
    return account_id == role.account_id and alone is Decision.ALLOW


def resource_of(bucket: Bucket | None, key: str | None, name: str | None = None) -> str:
    """Return the ARN of a bucket or an object as policies name it."""
    if bucket is not None:
        name = bucket.name
    return f"arn:aws:s3:::{name or '*'}" if key is None else f"arn:aws:s3:::{name}/{key}"


def is_payer(account_id: str | None, bucket: Bucket, payer: str | None) -> bool | None:
    """Return whether an account pays for its request to a Requester Pays bucket.

    Returns None where the owner pays, or is the account. `payer` is what the request declares ("Using Requester Pays
    buckets", Amazon S3 User Guide).
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
    work: Work | None = None,
) -> bool:
    """Return whether the writer of an object may set, while writing, what `action` sets otherwise.

    Writers own what they write, so that only a policy can deny it. A caller who may write only by a policy needs that
    policy to allow this too (API reference, PutObject, "s3:PutObjectAcl" and "s3:PutObjectTagging").
    """
    caller = _caller(account_id)
    work = work or Work()
    if principal is not None:
        own = principal.decide(action, resource_of(bucket, key), values, work)
        if own is Decision.DENY or (own is Decision.SILENT and account_id != bucket.owner_id):
            return False
        caller = principal.caller
        if own is Decision.SILENT:
            alone = _evaluate_policy(access_of(bucket), caller.alone, action, bucket, key, values, work, gifts=True)
            return (
                alone is Decision.ALLOW
                and _evaluate_policy(access_of(bucket), caller, action, bucket, key, values, work) is not Decision.DENY
            )
    if not bucket.settings:
        return account_id is not None and account_id == bucket.owner_id
    access = access_of(bucket)
    decision = _evaluate_policy(access, caller, action, bucket, key, values, work)
    if decision is Decision.DENY:
        return False
    if decision is Decision.ALLOW and not (access.block.restrict and access.public):
        return True
    return may_by_acl(account_id, "s3:PutObject", bucket)


def may_by_acl(account_id: str | None, action: str, bucket: Bucket) -> bool:
    """Return whether an account owns the bucket, or the bucket's ACL allows it `action`."""
    if account_id is not None and account_id == bucket.owner_id:
        return True
    access = access_of(bucket)
    permission = acl.OF_BUCKET.get(action)
    if permission is None or not access.has_acls or access.acl is None:
        return False
    return acl.allows(access.acl, account_id, permission, ignore_public=access.block.ignore_acls)


def rests_on_acl(
    account_id: str | None, action: str, bucket: Bucket, key: str | None, values: Values, work: Work | None = None
) -> bool:
    """Return whether a right that an account has comes from an ACL only."""
    access = access_of(bucket)
    if not access.has_acls or account_id == bucket.owner_id:
        return False
    try:
        return _evaluate_policy(access, _caller(account_id), action, bucket, key, values, work) is not Decision.ALLOW
    except ConditionNotLoaded:
        return False


def authorize_object(
    account_id: str | None, action: str, bucket: Bucket, owner_id: str, grants: Grants | None, verdict: Verdict
) -> bool:
    """Resolve an open `Verdict` by the object's owner and ACL. `grants` None: only the owner has rights."""
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


def _evaluate_policy(
    access: BucketAccess,
    caller: Caller | None,
    action: str,
    bucket: Bucket,
    key: str | None,
    values: Values,
    work: Work | None,
    *,
    gifts: bool = False,
) -> Decision:
    if access.closed:
        return Decision.DENY
    if access.policy is None:
        return Decision.SILENT
    resource = bucket.name if key is None else f"{bucket.name}/{key}"
    return access.policy.decide(Request(caller, action, resource, values), work, gifts=gifts)


def authorize_service(
    service: str, action: str, bucket: Bucket, key: str, values: Mapping[str, str], group: str = ""
) -> bool:
    """Return whether a service of the gateway may do `action` to an object.

    `values` are the condition keys, in lower case; they name the party that it acts for. The policy must name the
    service, or, where ACLs apply, the bucket's ACL must allow `group`.
    """
    access = access_of(bucket)
    if access.closed:
        return False
    decision = Decision.SILENT
    if access.policy is not None:
        service_values = {**values, "aws:principalisawsservice": "true", "aws:principalservicename": service}

        def value(name: str) -> tuple[str, ...] | None:
            return (service_values[name],) if name in service_values else None

        caller = Caller("", "", "", service=service)
        decision = access.policy.decide(Request(caller, action, f"{bucket.name}/{key}", value))
    if decision is not Decision.SILENT or not group or not access.has_acls or access.acl is None:
        return decision is Decision.ALLOW
    return acl.allows(access.acl, group, acl.OF_BUCKET[action], ignore_public=True)
