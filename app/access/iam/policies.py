"""Policies of users, groups and roles alike: inline ones, and attached ones of AWS or of the account."""

from __future__ import annotations

from typing import Any

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import documents
from sluice_s3.app.access.iam.actions import Call, Document, Handler, Result, identity_resource, operation
from sluice_s3.app.access.iam.errors import InvalidInput, MalformedPolicyDocument, NoSuchEntity
from sluice_s3.app.access.iam.paging import list_page
from sluice_s3.app.access.iam.users import require_identity
from sluice_s3.app.access.policy import Malformed, parse_identity
from sluice_s3.app.access.policy.managed import ARN_START, MANAGED
from sluice_s3.app.errors import NoSuchIdentity, TooManyIdentities
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, Identity

MAX_CHARACTERS = {USER: 2048, GROUP: 5120, ROLE: 10240}
"""Characters, without white space, of all inline policies of an identity.

"IAM and AWS STS quotas", IAM User Guide.
"""
MAX_SENT_CHARACTERS = 131_072
"""Characters of one policy as sent."""
MAX_ATTACHED = 10


def checked(text: str) -> str:
    """Return a policy valid to store. Raises MalformedPolicyDocument, InvalidInput."""
    if len(text) > MAX_SENT_CHARACTERS:
        raise InvalidInput("The policy document is too long.")
    try:
        parse_identity(text.encode("utf-8"))
    except Malformed as error:
        raise MalformedPolicyDocument(str(error)) from None
    except UnicodeEncodeError:
        raise MalformedPolicyDocument("The policy is no text.") from None
    return text


def size_of(text: str) -> int:
    """Return the characters that count against a quota."""
    return len("".join(text.split()))


def _put(kind: str, name: str, policy: str, text: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        policies = document.setdefault("policies", {})
        policies[policy] = text
        if sum(map(size_of, policies.values())) > MAX_CHARACTERS[kind]:
            raise TooManyIdentities(kind=f"characters of policies of {kind} {name}", most=MAX_CHARACTERS[kind])

    return documents.changed(change)


def _remove(policy: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        if policy not in document.get("policies", {}):
            raise NoSuchIdentity(kind="policy", name=policy)
        del document["policies"][policy]

    return documents.changed(change)


def _attach(arn: str, maximum: int) -> Any:
    def change(document: dict[str, Any]) -> None:
        attached_arns = document.setdefault("attached", [])
        if arn not in attached_arns:
            attached_arns.append(arn)
        if len(attached_arns) > maximum:
            raise TooManyIdentities(kind="PoliciesPerIdentity", most=MAX_ATTACHED)

    return documents.changed(change)


def _detach(arn: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        if arn not in document.get("attached", []):
            raise NoSuchIdentity(kind="policy", name=arn)
        document["attached"].remove(arn)

    return documents.changed(change)


async def require_policy(call: Call, arn: str) -> Identity:
    """Return the account's managed policy of an ARN. Raises NoSuchEntity."""
    found = await call.find_identity(POLICY, arn.rpartition("/")[2])
    if found is None or arn_of(found) != arn:
        raise NoSuchEntity(f"Policy {arn[:256]} does not exist or is not attachable.")
    return found


class Policies:
    """The policy operations for one kind of identity."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.parameter = f"{kind.capitalize()}Name"

    def name(self, call: Call) -> str:
        """Return the name of the identity with the policies."""
        return call.parameters.name(self.parameter, 128)

    async def put(self, call: Call) -> Result:
        """Handle PutUserPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_PutUserPolicy.html)."""
        name, policy = self.name(call), call.parameters.name("PolicyName", 128)
        await require_identity(call, self.kind, name)
        text = checked(call.parameters.require("PolicyDocument"))
        await call.index.change_identity(call.account_id, self.kind, name, _put(self.kind, name, policy, text))
        return {}

    async def get(self, call: Call) -> Result:
        """Handle GetUserPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetUserPolicy.html)."""
        found, policy = (
            await require_identity(call, self.kind, self.name(call)),
            call.parameters.name("PolicyName", 128),
        )
        policies = documents.policies(found)
        if policy not in policies:
            raise NoSuchIdentity(kind="policy", name=policy)
        return {self.parameter: found.name, "PolicyName": policy, "PolicyDocument": Document(policies[policy])}

    async def remove(self, call: Call) -> Result:
        """Handle DeleteUserPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteUserPolicy.html)."""
        policy = call.parameters.name("PolicyName", 128)
        await call.index.change_identity(call.account_id, self.kind, self.name(call), _remove(policy))
        return {}

    async def list(self, call: Call) -> Result:
        """Handle ListUserPolicies (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListUserPolicies.html)."""
        found = await require_identity(call, self.kind, self.name(call))
        return list_page(call, "PolicyNames", list(documents.policies(found)), str, str)

    async def attach(self, call: Call) -> Result:
        """Handle AttachUserPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_AttachUserPolicy.html)."""
        name, arn = self.name(call), call.parameters.require("PolicyArn")
        found = await require_identity(call, self.kind, name)
        if arn in MANAGED:
            room = MAX_ATTACHED - len(await call.index.groups_of(found.id, POLICY))
            await call.index.change_identity(call.account_id, self.kind, name, _attach(arn, room))
        else:
            policy, room = await require_policy(call, arn), MAX_ATTACHED - len(documents.attached(found))
            await call.index.join_group(call.account_id, (self.kind, name), (POLICY, policy.name), room)
        return {}

    async def detach(self, call: Call) -> Result:
        """Handle DetachUserPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DetachUserPolicy.html)."""
        name, arn = self.name(call), call.parameters.require("PolicyArn")
        if arn.startswith(ARN_START):
            await call.index.change_identity(call.account_id, self.kind, name, _detach(arn))
        else:
            policy = await require_policy(call, arn)
            await call.index.leave_group(call.account_id, (self.kind, name), (POLICY, policy.name))
        return {}

    async def list_attached(self, call: Call) -> Result:
        """Handle ListAttachedUserPolicies.

        https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListAttachedUserPolicies.html
        """
        found = await require_identity(call, self.kind, self.name(call))
        names = {arn: MANAGED[arn].name for arn in documents.attached(found)}
        names |= {arn_of(policy): policy.name for policy in await call.index.groups_of(found.id, POLICY)}
        return list_page(
            call, "AttachedPolicies", list(names), str, lambda arn: {"PolicyName": names[arn], "PolicyArn": arn}
        )


def _register(kind: str) -> None:
    of, called = Policies(kind), kind.capitalize()
    page = ("Marker", "MaxItems")
    operations: dict[str, tuple[Handler, tuple[str, ...]]] = {
        f"Put{called}Policy": (of.put, ("PolicyName", "PolicyDocument")),
        f"Get{called}Policy": (of.get, ("PolicyName",)),
        f"Delete{called}Policy": (of.remove, ("PolicyName",)),
        f"List{called}Policies": (of.list, page),
        f"Attach{called}Policy": (of.attach, ("PolicyArn",)),
        f"Detach{called}Policy": (of.detach, ("PolicyArn",)),
        f"ListAttached{called}Policies": (of.list_attached, page),
    }
    for name, (handler, takes) in operations.items():
        operation(name, of.parameter, *takes, on=identity_resource(kind, of.parameter))(handler)


for _kind in (USER, GROUP, ROLE):
    _register(_kind)
