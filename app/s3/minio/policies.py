"""Policies: those of the account, built-in ones, and to whom they are attached."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import orjson
from pydantic import Field

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.managed_policies import MAX_VERSIONS
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.index.iam.rows import GROUP, POLICY, USER, Identity
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.minio.call import AdminCall, Fields, done, plain
from sluice_s3.app.s3.minio.errors import AdminError, no_such
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.wire.response import Response


class Association(Fields):
    """The body of attach and detach."""

    policies: list[str] = Field(min_length=1, max_length=100)
    user: str = ""
    group: str = ""


async def require_arn(call: AdminCall, name: str, *actions: str) -> str:
    """Return the ARN of the policy of a name, on which the caller must be allowed all actions.

    Raises IamError, AdminError: not before the rights are checked, for a name that does not exist too.
    """
    found = await call.policy_arn(name)
    resource = found or arn(call.account_id, POLICY, "/", name)
    for action in actions:
        call.require(action, resource, resource)
    if found is None:
        raise no_such(POLICY, name)
    return found


def _text(policy: Identity) -> str:
    (text,) = documents.policies(policy).values()
    return text


@route("GET", "list-canned-policies")
async def list_canned_policies(call: AdminCall) -> Response:
    """Return all policies by name."""
    call.require("iam:ListPolicies", arn(call.account_id, POLICY, "/", ""))
    found = {policy.name: policy.text for policy in MANAGED.values()}
    found |= {policy.name: _text(policy) async for policy in call.each_of(POLICY)}
    return plain({name: orjson.Fragment(text) for name, text in sorted(found.items())})


@route("GET", "info-canned-policy")
async def info_canned_policy(call: AdminCall) -> Response:
    """Return a policy: with its dates for clients of version 2 of this call, else its text alone."""
    name = call.parameter("name")
    policy = await require_arn(call, name, "iam:GetPolicy", "iam:GetPolicyVersion")
    found = (await call.iam("GetPolicy", PolicyArn=policy))["Policy"]
    version = await call.iam("GetPolicyVersion", PolicyArn=policy, VersionId=found["DefaultVersionId"])
    text = orjson.Fragment(str(version["PolicyVersion"]["Document"]))
    if call.request.query.get("v") != "2":
        return plain(text)
    dates = {date: found[date] for date in ("CreateDate", "UpdateDate") if date in found}
    return plain({"PolicyName": name, "Policy": text, **dates})


@route("PUT", "add-canned-policy")
async def add_canned_policy(call: AdminCall) -> Response:
    """Create a policy, or give the one of that name a new text."""
    name = call.parameter("name")
    policy = await call.policy_arn(name)
    if policy in MANAGED:
        raise AdminError(409, "EntityAlreadyExists", f"{name} is built in: choose another name.")
    try:
        text = (await call.body()).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidArgument("The policy is no text.") from None
    if policy is None:
        await call.iam("CreatePolicy", PolicyName=name, PolicyDocument=text)
        return done()
    await _remove_versions(call, policy, MAX_VERSIONS - 1)
    await call.iam("CreatePolicyVersion", PolicyArn=policy, PolicyDocument=text, SetAsDefault="true")
    return done()


async def _remove_versions(call: AdminCall, policy: str, left: int) -> None:
    """Remove the oldest versions that are not the default, but for `left` of all."""
    versions = (await call.iam("ListPolicyVersions", PolicyArn=policy))["Versions"]
    old = [one["VersionId"] for one in versions if not one["IsDefaultVersion"]]
    for version in old[: max(len(versions) - left, 0)]:
        await call.iam("DeletePolicyVersion", PolicyArn=policy, VersionId=version)


@route("DELETE", "remove-canned-policy")
async def remove_canned_policy(call: AdminCall) -> Response:
    """Remove a policy of the account with its versions, if it is attached to none."""
    name = call.parameter("name")
    policy = await require_arn(call, name, "iam:ListEntitiesForPolicy", "iam:DeletePolicy")
    if policy in MANAGED:
        raise AdminError(400, "XMinioAdminPolicyInUse", f"{name} is built in and cannot be removed.")
    entities = await call.iam("ListEntitiesForPolicy", PolicyArn=policy, MaxItems="1")
    if any(entities[f"Policy{kind}s"] for kind in ("User", "Group", "Role")):
        raise AdminError(400, "XMinioAdminPolicyInUse", "The policy is attached: detach it first.")
    await _remove_versions(call, policy, 1)
    await call.iam("DeletePolicy", PolicyArn=policy)
    return done()


async def attach(call: AdminCall, kind: str, name: str, arns: Iterable[str]) -> None:
    """Attach policies to a user or group."""
    for one in arns:
        await call.iam(f"Attach{kind.capitalize()}Policy", PolicyArn=one, **{f"{kind.capitalize()}Name": name})


async def detach(call: AdminCall, kind: str, name: str, arns: Iterable[str]) -> None:
    """Detach policies from a user or group."""
    for one in arns:
        await call.iam(f"Detach{kind.capitalize()}Policy", PolicyArn=one, **{f"{kind.capitalize()}Name": name})


async def _attached(call: AdminCall, kind: str, name: str) -> dict[str, str]:
    """Return the names of policies attached to a user or group, by their ARNs."""
    called = kind.capitalize()
    found = await call.iam(f"ListAttached{called}Policies", **{f"{called}Name": name})
    return {policy["PolicyArn"]: policy["PolicyName"] for policy in found["AttachedPolicies"]}


@route("POST", "idp/builtin/policy/attach")
async def attach_policies(call: AdminCall) -> Response:
    """Attach policies to a user or group; says which of them were not attached before."""
    return await _associate(call, "policiesAttached")


@route("POST", "idp/builtin/policy/detach")
async def detach_policies(call: AdminCall) -> Response:
    """Detach policies; says which of them were attached before."""
    return await _associate(call, "policiesDetached")


async def _associate(call: AdminCall, changed: str) -> Response:
    body = await call.read(Association)
    if bool(body.user) == bool(body.group):
        raise InvalidArgument("Give either a user or a group.")
    kind, name = (USER, body.user) if body.user else (GROUP, body.group)
    attaches, before = changed == "policiesAttached", await _attached(call, kind, name)
    if attaches:
        arns = {await require_arn(call, one): one for one in body.policies}
        changes = {arn: one for arn, one in arns.items() if arn not in before}
    else:
        changes = {arn: one for arn, one in before.items() if one in body.policies}
    policies = list(dict.fromkeys(changes.values()))
    if not policies:
        done_already = "already attached" if attaches else "not attached"
        raise AdminError(400, "XMinioAdminPolicyChangeAlreadyApplied", f"The specified policy is {done_already}.")
    await (attach if attaches else detach)(call, kind, name, changes)
    return await call.encrypted({changed: policies, "updatedAt": generate.date(int(time.time() * 1000))})


@route("PUT", "set-user-or-group-policy")
async def set_policies(call: AdminCall) -> Response:
    """Make the policies of a user or group exactly those named, as clients before 2023 do."""
    kind = GROUP if call.request.query.get("isGroup") == "true" else USER
    name = call.parameter("userOrGroup")
    before = await _attached(call, kind, name)
    after = [await require_arn(call, policy) for policy in call.parameter("policyName").split(",")]
    await attach(call, kind, name, [one for one in after if one not in before])
    await detach(call, kind, name, [one for one in before if one not in after])
    return done()


async def _all_attached(call: AdminCall, kind: str) -> dict[str, list[str]]:
    """Return the names of attached policies of all users or groups. Raises IamError."""
    found = {}
    for one in await call.all_of(kind):
        call.require(f"iam:ListAttached{kind.capitalize()}Policies", arn_of(one))
        found[one.name] = await call.policies_of(one)
    return found


@route("GET", "idp/builtin/policy-entities")
async def policy_entities(call: AdminCall) -> Response:
    """Return users and groups with their policies, or policies with those that they are attached to."""
    for kind in (USER, GROUP):
        call.require(f"iam:List{kind.capitalize()}s", arn(call.account_id, kind, "/", ""))
    users, groups = await _all_attached(call, USER), await _all_attached(call, GROUP)
    asked = {name: call.parameters(name) for name in ("user", "group", "policy")}
    found: dict[str, Any] = {"timestamp": generate.date(int(time.time() * 1000))}
    found["userMappings"] = [{"user": one, "policies": users[one]} for one in asked["user"] if one in users]
    found["groupMappings"] = [{"group": one, "policies": groups[one]} for one in asked["group"] if one in groups]
    names = asked["policy"]
    if not any(asked.values()):
        names = sorted({policy for policies in (*users.values(), *groups.values()) for policy in policies})
    found["policyMappings"] = [
        {
            "policy": name,
            "users": [user for user, policies in users.items() if name in policies],
            "groups": [group for group, policies in groups.items() if name in policies],
        }
        for name in names
    ]
    return await call.encrypted(found)
