"""Managed policies of the account: stored once under a name, attached to users, groups and roles.

Their documents hold `policies` as those of users do, so that a key's rights are read alike, and also

versions     id → text and milliseconds of its creation
default      the id of the version that holds
next         the number of the next version
description  as it was given
"""

from __future__ import annotations

import re
from typing import Any

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.actions import (
    Call,
    Document,
    Result,
    new_identity_resource,
    operation,
    parameter_resource,
    path_resource,
)
from sluice_s3.app.access.iam.errors import LimitExceeded, ValidationError
from sluice_s3.app.access.iam.paging import list_page
from sluice_s3.app.access.iam.policies import checked, require_policy, size_of
from sluice_s3.app.access.iam.users import MAX_POLICIES, created
from sluice_s3.app.access.policy.managed import ARN_START, MANAGED
from sluice_s3.app.errors import IdentityInUse, NoSuchIdentity, TooManyIdentities
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, Identity

MAX_VERSIONS, MAX_CHARACTERS = 5, 6144
""""IAM and AWS STS quotas", IAM User Guide. Characters without white space."""
MAX_STORED = 2 * MAX_CHARACTERS
"""Characters of a stored text, with white space: each policy keeps up to five."""
_SPACE = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\s+')
"""A string of JSON, or the white space between."""
PAGE = 50
"""Policies that a list reads at once."""
OWN, AWS = "account/", "aws/"
"""Starts of the markers of a list: the account's policies come first."""
MAX_DESCRIPTION = 1000
FIRST_VERSION = "v1"
"""The one version of AWS's own policies."""
SCOPES = {"All": (True, True), "AWS": (True, False), "Local": (False, True)}
TRUTH = {"true": True, "false": False}


def _checked(text: str) -> str:
    """Return the text to store: as it was sent, but without white space between its words if it is long."""
    size = size_of(checked(text))
    if len(text) > MAX_STORED:
        text = _SPACE.sub(r"\1", text)
    if size > MAX_CHARACTERS or len(text) > MAX_STORED:
        raise LimitExceeded(f"Cannot exceed quota for PolicySize: {MAX_CHARACTERS}")
    return text


async def _render(call: Call, policy: Identity) -> Result:
    document = documents.read(policy)
    versions = document["versions"]
    return {
        "PolicyName": policy.name,
        "PolicyId": policy.id,
        "Arn": arn_of(policy),
        "Path": policy.path,
        "DefaultVersionId": document["default"],
        "AttachmentCount": await call.index.count_members(policy.id),
        "PermissionsBoundaryUsageCount": 0,
        "IsAttachable": True,
        **({"Description": document["description"]} if document.get("description") else {}),
        "CreateDate": generate.date(policy.created),
        "UpdateDate": generate.date(max(made for _, made in versions.values())),
    }


def _render_aws(arn: str) -> Result:
    return {
        "PolicyName": MANAGED[arn].name,
        "Arn": arn,
        "Path": f"/{arn.removeprefix(ARN_START).removesuffix(MANAGED[arn].name)}",
        "DefaultVersionId": FIRST_VERSION,
        "IsAttachable": True,
    }


@operation(
    "CreatePolicy",
    "PolicyName",
    "PolicyDocument",
    "Path",
    "Description",
    on=new_identity_resource(POLICY, "PolicyName"),
)
async def create_policy(call: Call) -> Result:
    """Handle CreatePolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreatePolicy.html)."""
    name, text = call.parameters.name("PolicyName", 128), _checked(call.parameters.require("PolicyDocument"))
    description = call.parameters.get("Description")
    if len(description) > MAX_DESCRIPTION:
        raise ValidationError(f"A description has at most {MAX_DESCRIPTION} characters.")
    new = created(call, POLICY, name)
    document = {
        "policies": {name: text},
        "versions": {FIRST_VERSION: [text, new.created]},
        "default": FIRST_VERSION,
        "next": 2,
        "description": description,
    }
    new = new._replace(document=documents.write(document))
    await call.index.add_identity(new, MAX_POLICIES)
    return {"Policy": await _render(call, new)}


@operation("GetPolicy", "PolicyArn", on=parameter_resource("PolicyArn"))
async def get_policy(call: Call) -> Result:
    """Handle GetPolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetPolicy.html)."""
    arn = call.parameters.require("PolicyArn")
    if arn in MANAGED:
        return {"Policy": _render_aws(arn)}
    return {"Policy": await _render(call, await require_policy(call, arn))}


@operation("ListPolicies", "Scope", "OnlyAttached", "PathPrefix", "Marker", "MaxItems", on=path_resource(POLICY))
async def list_policies(call: Call) -> Result:
    """Handle ListPolicies (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListPolicies.html)."""
    scope = call.parameters.parse_choice("Scope", SCOPES) if call.parameters.has("Scope") else SCOPES["All"]
    only_attached = call.parameters.has("OnlyAttached") and call.parameters.parse_choice("OnlyAttached", TRUTH)
    prefix = call.parameters.path_prefix()
    found = await _own_page(call, prefix, only_attached) if scope[1] else []
    if scope[0] and not only_attached:
        aws = [(AWS + arn, _render_aws(arn)) for arn in MANAGED]
        found += [one for one in aws if one[1]["Path"].startswith(prefix)]
    return list_page(call, "Policies", found, lambda one: one[0], lambda one: one[1])


async def _own_page(call: Call, prefix: str, only_attached: bool) -> list[tuple[str, Result]]:
    """Return the account's policies after the marker, each with its own: one more than a page has at most."""
    marker, limit = call.parameters.get("Marker"), call.parameters.limit() + 1
    found: list[tuple[str, Result]] = []
    after, at_once = marker.removeprefix(OWN), PAGE if only_attached else min(limit, PAGE)
    more = not marker.startswith(AWS)
    while more and len(found) < limit:
        page = await call.index.identities_of(call.account_id, POLICY, prefix, after, at_once)
        for policy in page:
            rendered = await _render(call, policy)
            if rendered["AttachmentCount"] or not only_attached:
                found.append((OWN + policy.folded, rendered))
        more = len(page) == at_once
        after = page[-1].folded if page else ""
    return found[:limit]


@operation("DeletePolicy", "PolicyArn", on=parameter_resource("PolicyArn"))
async def delete_policy(call: Call) -> Result:
    """Handle DeletePolicy (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeletePolicy.html)."""
    policy = await require_policy(call, call.parameters.require("PolicyArn"))

    def check(found: Identity) -> None:
        if len(documents.read(found)["versions"]) > 1:
            raise IdentityInUse(what="versions")

    await call.index.remove_identity(call.account_id, POLICY, policy.name, check)
    return {}


@operation("ListEntitiesForPolicy", "PolicyArn", "Marker", "MaxItems", on=parameter_resource("PolicyArn"))
async def list_entities_for_policy(call: Call) -> Result:
    """Handle ListEntitiesForPolicy.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListEntitiesForPolicy.html
    """
    policy = await require_policy(call, call.parameters.require("PolicyArn"))
    found = await call.index.members_of(policy.id)
    page = list_page(call, "Entities", found, lambda one: f"{one.kind}/{one.folded}", lambda one: one)
    answer: Result = {}
    for kind in (GROUP, USER, ROLE):
        name = kind.capitalize()
        answer[f"Policy{name}s"] = [
            {f"{name}Name": one.name, f"{name}Id": one.id} for one in page["Entities"] if one.kind == kind
        ]
    return answer | {name: value for name, value in page.items() if name != "Entities"}


@operation("CreatePolicyVersion", "PolicyArn", "PolicyDocument", "SetAsDefault", on=parameter_resource("PolicyArn"))
async def create_policy_version(call: Call) -> Result:
    """Handle CreatePolicyVersion.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreatePolicyVersion.html
    """
    text = _checked(call.parameters.require("PolicyDocument"))
    default = call.parameters.has("SetAsDefault") and call.parameters.parse_choice("SetAsDefault", TRUTH)
    made, number = generate.now(), ""

    def change(document: dict[str, Any]) -> None:
        nonlocal number
        if len(document["versions"]) >= MAX_VERSIONS:
            raise TooManyIdentities(kind="VersionsPerPolicy", most=MAX_VERSIONS)
        number = f"v{document['next']}"
        document["next"] += 1
        document["versions"][number] = [text, made]
        if default:
            _set_default(document, number)

    await _change(call, change)
    return {"PolicyVersion": _render_version(number, made, default)}


def _set_default(document: dict[str, Any], number: str) -> None:
    if number not in document["versions"]:
        raise _no_version(number)
    (name,) = document["policies"]
    document["default"] = number
    document["policies"][name] = document["versions"][number][0]


def _no_version(number: str) -> NoSuchIdentity:
    return NoSuchIdentity(kind="policy version", name=number[:64])


def _render_version(number: str, made: int, default: bool) -> Result:
    return {"VersionId": number, "IsDefaultVersion": default, "CreateDate": generate.date(made)}


async def _change(call: Call, change: Any) -> None:
    policy = await require_policy(call, call.parameters.require("PolicyArn"))
    await call.index.change_identity(call.account_id, POLICY, policy.name, documents.changed(change))


@operation("SetDefaultPolicyVersion", "PolicyArn", "VersionId", on=parameter_resource("PolicyArn"))
async def set_default_policy_version(call: Call) -> Result:
    """Handle SetDefaultPolicyVersion.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_SetDefaultPolicyVersion.html
    """
    number = call.parameters.require("VersionId")
    await _change(call, lambda document: _set_default(document, number))
    return {}


@operation("DeletePolicyVersion", "PolicyArn", "VersionId", on=parameter_resource("PolicyArn"))
async def delete_policy_version(call: Call) -> Result:
    """Handle DeletePolicyVersion.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeletePolicyVersion.html
    """
    number = call.parameters.require("VersionId")

    def change(document: dict[str, Any]) -> None:
        if document["versions"].get(number) is None:
            raise _no_version(number)
        if document["default"] == number:
            raise IdentityInUse(what="default version")
        del document["versions"][number]

    await _change(call, change)
    return {}


@operation("GetPolicyVersion", "PolicyArn", "VersionId", on=parameter_resource("PolicyArn"))
async def get_policy_version(call: Call) -> Result:
    """Handle GetPolicyVersion (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetPolicyVersion.html)."""
    arn, number = call.parameters.require("PolicyArn"), call.parameters.require("VersionId")
    if arn in MANAGED:
        if number != FIRST_VERSION:
            raise _no_version(number)
        text = Document(MANAGED[arn].text)
        return {"PolicyVersion": {"VersionId": number, "IsDefaultVersion": True, "Document": text}}
    document = documents.read(await require_policy(call, arn))
    if number not in document["versions"]:
        raise _no_version(number)
    text, made = document["versions"][number]
    return {
        "PolicyVersion": {"Document": Document(text), **_render_version(number, made, document["default"] == number)}
    }


@operation("ListPolicyVersions", "PolicyArn", "Marker", "MaxItems", on=parameter_resource("PolicyArn"))
async def list_policy_versions(call: Call) -> Result:
    """Handle ListPolicyVersions (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListPolicyVersions.html)."""
    arn = call.parameters.require("PolicyArn")
    if arn in MANAGED:
        versions, default = [(FIRST_VERSION, 0)], FIRST_VERSION
    else:
        document = documents.read(await require_policy(call, arn))
        versions, default = [(one, made) for one, (_, made) in document["versions"].items()], document["default"]
    return list_page(
        call,
        "Versions",
        versions,
        lambda one: f"{int(one[0][1:]):08}",
        lambda one: _render_version(*one, one[0] == default),
    )
