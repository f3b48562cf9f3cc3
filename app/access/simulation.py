"""Simulates an authorization: what `authorize` decides, and by which statement.

The decision is that of `authorize` itself. An observer in its budget records each policy that it evaluates; what is
here only reads this record and says in words what decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sluice_s3.app.access import acl
from sluice_s3.app.access.acl import Grant, Grants
from sluice_s3.app.access.authorize import (
    ALWAYS_OWNERS,
    NO_ACCOUNT,
    OF_CREATION,
    SERVICE_ACTIONS,
    Verdict,
    authorize,
    authorize_object,
)
from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.access.policy import Decision, Policy, Work
from sluice_s3.app.access.policy.observer import PolicyObserver, PolicyTrace, StatementTrace
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import NamedPolicy, Principal
from sluice_s3.app.index.buckets.rows import Bucket

ALLOWED, DENIED, DEPENDS = "allowed", "denied", "depends"
"""Decisions. DEPENDS: on an object or upload that is not there, or not known."""
SESSION, BUCKET = "session", "bucket"
"""Kinds of `NamedPolicy` besides those of a principal's own policies."""


class SimulatedObject(NamedTuple):
    """The owner and the ACL of an object. `grants` None: only its owner has rights."""

    owner_id: str
    grants: Grants | None


class Question(NamedTuple):
    """A question: may this caller do this."""

    account_id: str | None
    """None: anonymous."""
    principal: Principal | None
    """None: the account itself."""
    action: str
    bucket: Bucket | None
    key: str | None
    name: str | None
    """The name of a bucket that need not exist."""
    values: Values
    sources: Mapping[int, NamedPolicy]
    """The origin of each of the principal's policies, by `id(policy)`; any other is the bucket's."""
    object: SimulatedObject | None = None


class NamedTrace(NamedTuple):
    """The evaluation of a policy, and where the policy comes from."""

    source: NamedPolicy
    trace: PolicyTrace


class Deciding(NamedTuple):
    """A statement that decides."""

    source: NamedPolicy
    statement: StatementTrace


class Simulation(NamedTuple):
    """The decision on a question, and its reasons."""

    decision: str
    ground: str
    """What decided, in a word: `explicit-deny`, `statement`, `owner`, `acl`, …"""
    reason: str
    """The same as a sentence."""
    deciding: tuple[Deciding, ...] = ()
    grant: Grant | None = None
    """The grant of an ACL that decided."""
    traces: tuple[NamedTrace, ...] = ()


def simulate(question: Question) -> Simulation:
    """Return what `authorize` decides, and why. Raises what `values` raises."""
    observer = PolicyObserver()
    verdict = authorize(
        question.account_id,
        question.action,
        question.bucket,
        question.key,
        question.values,
        principal=question.principal,
        name=question.name,
        work=Work(observer=observer),
    )
    bucket_policy = NamedPolicy(BUCKET, "", "" if question.bucket is None else question.bucket.name, "")
    traces = tuple(NamedTrace(question.sources.get(id(one.policy), bucket_policy), one) for one in observer.traces)
    return _Reasons(question, verdict, traces).explain()._replace(traces=traces)


class _Reasons:
    """Reads from the record of an authorization what decided."""

    def __init__(self, question: Question, verdict: Verdict, traces: Sequence[NamedTrace]) -> None:
        self.question = question
        self.verdict = verdict
        self.limits = [one for one in traces if one.source.kind == SESSION]
        self.of_bucket = [one for one in traces if one.source.kind == BUCKET]
        self.own = [one for one in traces if one.source.kind not in (SESSION, BUCKET)]

    def explain(self) -> Simulation:
        if self.verdict is Verdict.YES:
            return self._allowed()
        if self.verdict is Verdict.NO:
            return self._denied()
        return self._open()

    @property
    def _owner(self) -> bool:
        bucket = self.question.bucket
        return bucket is not None and self.question.account_id == bucket.owner_id

    def _statements(self, traces: Sequence[NamedTrace], decision: Decision) -> tuple[Deciding, ...]:
        found = [one for one in traces if one.trace.decision is decision]
        return tuple(Deciding(one.source, one.trace.deciding) for one in found if one.trace.deciding is not None)

    def _allowed(self) -> Simulation:
        question = self.question
        if self._owner and question.action in ALWAYS_OWNERS and question.principal is None:
            return Simulation(ALLOWED, "owner", "No bucket policy can deny the bucket's owner this action.")
        own, of_bucket = self._statements(self.own, Decision.ALLOW), self._allows_of_bucket()
        limits = self._statements(self.limits, Decision.ALLOW)
        if own and not of_bucket and question.bucket is not None and not self._owner:
            grant = self._granted()
            reason = f"{_describe(own)} allows it, and the bucket's ACL grants it to the account."
            return Simulation(ALLOWED, "acl", reason, own + limits, grant)
        if deciding := own + of_bucket:
            return Simulation(ALLOWED, "statement", f"{_describe(deciding)} allows it.", deciding + limits)
        if question.bucket is None:
            return Simulation(ALLOWED, "account", "Every account may do this.", limits)
        if self._owner and (question.principal is None or question.principal.policies is None):
            return Simulation(ALLOWED, "owner", "The bucket's owner may do what no policy denies.", limits)
        grant = self._granted()
        whose = "" if grant is None else f": {grant.permission} for {grant.grantee}"
        return Simulation(ALLOWED, "acl", f"The bucket's ACL grants it{whose}.", limits, grant)

    def _allows_of_bucket(self) -> tuple[Deciding, ...]:
        """Return the bucket policy's statements that count; of those for a principal alone, if it was asked so."""
        alone = [one for one in self.of_bucket if one.trace.gifts]
        return () if self._is_restricted() else self._statements(alone or self.of_bucket, Decision.ALLOW)

    def _denied(self) -> Simulation:
        question, principal = self.question, self.question.principal
        if principal is not None and principal.broken:
            return Simulation(DENIED, "unreadable", "A policy of this principal cannot be read: nothing is allowed.")
        for traces in (self.limits, self.own, self.of_bucket):
            if denies := self._statements(traces, Decision.DENY):
                return Simulation(DENIED, "explicit-deny", f"{_describe(denies[:1])} denies it.", denies)
            if any(one.trace.decision is Decision.DENY for one in traces):
                return Simulation(DENIED, "too-costly", "The policies take too long to evaluate: they deny everything.")
        if self.limits and not self._statements(self.limits, Decision.ALLOW):
            return Simulation(DENIED, "session-policy", "No session policy allows it, and these limit the session.")
        if question.bucket is None:
            return self._without_bucket()
        if access_of(question.bucket).closed:
            return Simulation(DENIED, "unreadable", "The bucket's settings cannot be read: only repairs are allowed.")
        allows = self._statements(self.of_bucket, Decision.ALLOW)
        if allows and self._is_restricted() and (principal is None or self._own_allows()):
            reason = f"{_describe(allows)} allows it, but RestrictPublicBuckets ignores public policies for others."
            return Simulation(DENIED, "public-access-block", reason, allows)
        return self._not_allowed(allows)

    def _not_allowed(self, allows: tuple[Deciding, ...]) -> Simulation:
        """Return the reason where nothing denies and nothing allows."""
        if self.question.principal is not None and not self._owner and allows:
            reason = (
                f"{_describe(allows)} allows it, but the bucket belongs to another account: the principal's own"
                " policies must allow it too, and none does."
            )
            return Simulation(DENIED, "other-account", reason, allows)
        if self.question.principal is not None and not self._owner and self._own_allows():
            own = self._statements(self.own, Decision.ALLOW)
            reason = (
                f"{_describe(own)} allows it, but the bucket belongs to another account: its policy or ACL must allow"
                " it too, and neither does."
            )
            return Simulation(DENIED, "other-account", reason, own)
        grant = self._granted(ignored=True)
        if grant is not None:
            reason = (
                f"No statement allows it. The bucket's ACL has the grant {grant.permission} for {grant.grantee}, but"
                f" {self._why_ignored()}."
            )
            return Simulation(DENIED, "acl-ignored", reason, grant=grant)
        return Simulation(DENIED, "no-statement", "No statement allows it, and neither ownership nor an ACL does.")

    def _without_bucket(self) -> Simulation:
        allows = self._statements(self.own, Decision.ALLOW)
        allowed = OF_CREATION if self.question.principal is not None else SERVICE_ACTIONS
        if self.question.account_id is not None and self.question.action not in allowed:
            return Simulation(DENIED, "no-bucket", "There is no such bucket: S3 answers NoSuchBucket.", allows)
        return Simulation(DENIED, "no-statement", "No statement allows it.")

    def _open(self) -> Simulation:
        """Return the decision where the object decides."""
        question, known = self.question, self.question.object
        deciding = self._statements([*self.own, *self.of_bucket], Decision.ALLOW)
        if self.verdict is Verdict.BY_UPLOAD:
            return Simulation(DEPENDS, "upload", "Only who began the upload may do this.", deciding)
        if self.verdict is Verdict.BY_TAGS or question.bucket is None:
            return Simulation(
                DEPENDS,
                "tags",
                "It depends on the object's tags, which are not known: give them as conditions.",
                deciding,
            )
        if known is None:
            reason = "It depends on the object's owner and ACL; this object is not there, or not known to you."
            return Simulation(DEPENDS, "object", reason, deciding)
        arguments = (question.account_id, question.action, question.bucket, known.owner_id)
        allowed = authorize_object(*arguments, known.grants, self.verdict)
        if not allowed:
            return Simulation(DENIED, "object-acl", "Neither the object's owner nor its ACL allows it.", deciding)
        if not authorize_object(*arguments, None, self.verdict):
            return Simulation(ALLOWED, "object-acl", "The object's ACL grants it.", deciding)
        if question.account_id == known.owner_id:
            return Simulation(ALLOWED, "object-owner", "The account owns the object.", deciding)
        return Simulation(ALLOWED, "statement", f"{_describe(deciding)} allows it.", deciding)

    def _own_allows(self) -> bool:
        """Return whether the principal's own policies allow it; an account's session needs none."""
        principal = self.question.principal
        return principal is not None and (
            principal.policies is None or bool(self._statements(self.own, Decision.ALLOW))
        )

    def _is_restricted(self) -> bool:
        """Return whether a public access block ignores what the bucket's policy allows."""
        if self.question.bucket is None:
            return False
        access = access_of(self.question.bucket)
        return access.block.restrict and access.public and not self._owner

    def _granted(self, *, ignored: bool = False) -> Grant | None:
        """Return the grant of the bucket's ACL for the action; `ignored`: also one that does not count."""
        question = self.question
        permission = acl.OF_BUCKET.get(question.action)
        if question.bucket is None or permission is None:
            return None
        access = access_of(question.bucket)
        ignore_public = access.block.ignore_acls and not ignored
        accounts = [question.account_id] if question.principal is None else [question.account_id, NO_ACCOUNT]
        for grant in access.acl or ():
            if any(acl.allows((grant,), one, permission, ignore_public=ignore_public) for one in accounts):
                return grant
        return None

    def _why_ignored(self) -> str:
        access = access_of(self.question.bucket) if self.question.bucket is not None else None
        if access is not None and not access.has_acls:
            return "ACLs are disabled (BucketOwnerEnforced)"
        if access is not None and access.block.ignore_acls:
            return "IgnorePublicAcls ignores public grants"
        return "the principal's own policies must allow it too"


def _describe(deciding: Sequence[Deciding]) -> str:
    """Return statements as the subject of a sentence."""
    named = [f"{_describe_one(one)} of {describe_source(one.source)}" for one in deciding[:3]]
    return " and ".join(named) or "A policy"


def _describe_one(one: Deciding) -> str:
    sid = one.statement.statement.sid
    return f"Statement {one.statement.place + 1}" + (f" (“{sid}”)" if sid else "")


def describe_source(source: NamedPolicy) -> str:
    """Return a policy as people call it."""
    if source.kind == BUCKET:
        return "the bucket policy"
    if source.kind == SESSION:
        return f"the session policy {source.name}".rstrip()
    where = {"inline": "inline policy", "group": "group policy", "managed": "managed policy", "aws": "AWS policy"}
    owner = f" of {source.owner.rpartition(':')[2]}" if source.kind in ("inline", "group") else ""
    return f"the {where.get(source.kind, 'policy')} {source.name}{owner}"


def label(policies: Sequence[tuple[NamedPolicy, Policy]]) -> tuple[tuple[Policy, ...], dict[int, NamedPolicy]]:
    """Return copies of policies that `Question.sources` can tell apart, and these sources.

    Two policies of the same text may be one object.
    """
    copies = [(source, Policy(policy.statements)) for source, policy in policies]
    return tuple([copy for _, copy in copies]), {id(copy): source for source, copy in copies}
