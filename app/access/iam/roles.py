"""Roles and their trust policies."""

from __future__ import annotations

from typing import Any

from sluice_s3.app.access import policy_principals
from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.actions import Call, Document, Result, new_identity_resource, operation, path_resource
from sluice_s3.app.access.iam.actions import identity_resource as on_named
from sluice_s3.app.access.iam.errors import MalformedPolicyDocument, ValidationError
from sluice_s3.app.access.iam.paging import list_identities
from sluice_s3.app.access.iam.policies import MAX_SENT_CHARACTERS
from sluice_s3.app.access.iam.users import MAX_ROLES, check_unused, created, require_identity
from sluice_s3.app.access.policy import Malformed, parse_trust
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.index.iam.rows import IDENTITY, ROLE, Identity

MAX_TRUST = 2048
"""Characters of a trust policy, without white space."""
LEAST, MOST = 3600, 43_200
"""Bounds of MaxSessionDuration in seconds."""


def render_role(role: Identity, *, whole: bool = True) -> Result:
    """Return the response element of a role; `whole` adds the fields of GetRole and ListRoles."""
    document = documents.read(role)
    fields: Result = {
        "Path": role.path,
        "RoleName": role.name,
        "RoleId": role.id,
        "Arn": arn_of(role),
        "CreateDate": generate.date(role.created),
        "AssumeRolePolicyDocument": Document(document["trust"]),
    }
    if whole:
        if description := document.get("description"):
            fields["Description"] = description
        fields["MaxSessionDuration"] = document.get("max_session", documents.MAX_SESSION)
    return fields


async def trust(call: Call, text: str) -> dict[str, Any]:
    """Return the entry `trust` of a role's document.

    Raises MalformedPolicyDocument, also for principals that do not exist.
    """
    try:
        if len(text) > MAX_SENT_CHARACTERS or len("".join(text.split())) > MAX_TRUST:
            raise Malformed(f"The policy is longer than {MAX_TRUST} characters.")
        parse_trust(text.encode("utf-8"))
    except (Malformed, UnicodeEncodeError) as error:
        raise MalformedPolicyDocument(str(error)) from None
    try:
        return {"trust": await policy_principals.bind_principals(call.index, text, call.account_id)}
    except UnknownPrincipal as error:
        raise MalformedPolicyDocument(f'{error}: "{error.kind}":"{error.name}"') from None


async def _with_names(call: Call, answer: Result) -> Result:
    """Return the response with the ARNs of the principals in its trust policy."""
    trust = await policy_principals.unbind_principals(call.index, answer["AssumeRolePolicyDocument"])
    return answer | {"AssumeRolePolicyDocument": Document(trust)}


@operation(
    "CreateRole",
    "RoleName",
    "Path",
    "AssumeRolePolicyDocument",
    "Description",
    "MaxSessionDuration",
    on=new_identity_resource(ROLE, "RoleName"),
)
async def create_role(call: Call) -> Result:
    """Handle CreateRole (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateRole.html)."""
    parameters = call.parameters
    name = parameters.name("RoleName")
    document = await trust(call, parameters.require("AssumeRolePolicyDocument"))
    document |= _described(call)
    role = created(call, ROLE, name, documents.write(document))
    await call.index.add_identity(role, MAX_ROLES)
    return {"Role": await _with_names(call, render_role(role, whole=False))}


def _described(call: Call) -> dict[str, Any]:
    found: dict[str, Any] = {}
    description = call.parameters.get("Description")
    if len(description) > 1000 or not all(sign.isprintable() or sign in "\t\n\r" for sign in description):
        raise ValidationError("1 validation error detected: Value at 'description' failed to satisfy constraint")
    if call.parameters.has("Description"):
        found["description"] = description
    if call.parameters.has("MaxSessionDuration"):
        found["max_session"] = call.parameters.number("MaxSessionDuration", LEAST, LEAST, MOST)
    return found


@operation("GetRole", "RoleName", on=on_named(ROLE, "RoleName"))
async def get_role(call: Call) -> Result:
    """Handle GetRole (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetRole.html)."""
    role = await require_identity(call, ROLE, call.parameters.name("RoleName"))
    use = await call.index.last_use(IDENTITY, role.id)
    last_used = {} if use is None else {"LastUsedDate": generate.date(use.used), "Region": use.region}
    return {"Role": await _with_names(call, render_role(role) | {"RoleLastUsed": last_used})}


@operation("ListRoles", "PathPrefix", "Marker", "MaxItems", on=path_resource(ROLE))
async def list_roles(call: Call) -> Result:
    """Handle ListRoles (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListRoles.html)."""
    answer = await list_identities(call, ROLE, "Roles", render_role)
    return answer | {"Roles": [await _with_names(call, role) for role in answer["Roles"]]}


@operation("UpdateRole", "RoleName", "Description", "MaxSessionDuration", on=on_named(ROLE, "RoleName"))
async def update_role(call: Call) -> Result:
    """Handle UpdateRole (https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateRole.html)."""
    described = _described(call)
    await _change(call, described)
    return {}


@operation("UpdateRoleDescription", "RoleName", "Description", on=on_named(ROLE, "RoleName"))
async def update_role_description(call: Call) -> Result:
    """Handle UpdateRoleDescription.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateRoleDescription.html
    """
    return {"Role": await _with_names(call, render_role(await _change(call, _described(call))))}


@operation("UpdateAssumeRolePolicy", "RoleName", "PolicyDocument", on=on_named(ROLE, "RoleName"))
async def update_assume_role_policy(call: Call) -> Result:
    """Handle UpdateAssumeRolePolicy.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateAssumeRolePolicy.html
    """
    await require_identity(call, ROLE, call.parameters.name("RoleName"))
    await _change(call, await trust(call, call.parameters.require("PolicyDocument")))
    return {}


async def _change(call: Call, fields: dict[str, Any]) -> Identity:
    name = call.parameters.name("RoleName")
    change = documents.changed(lambda document: document.update(fields))
    return await call.index.change_identity(call.account_id, ROLE, name, change)


@operation("DeleteRole", "RoleName", on=on_named(ROLE, "RoleName"))
async def delete_role(call: Call) -> Result:
    """Handle DeleteRole (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html)."""
    await call.index.remove_identity(call.account_id, ROLE, call.parameters.name("RoleName"), check_unused)
    return {}
