"""Temporary keys: AssumeRole, GetSessionToken, GetCallerIdentity."""

from __future__ import annotations

import orjson

from sluice_s3.app.access.account import account_number, caller_of
from sluice_s3.app.access.authorize import authorize_assume, no_values
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.actions import Call, Result, denied, with_keys
from sluice_s3.app.access.iam.errors import (
    AccessDenied,
    InvalidClientTokenId,
    LimitExceeded,
    NotImplemented,
    ValidationError,
)
from sluice_s3.app.access.iam.policies import checked, size_of
from sluice_s3.app.access.policy.identity_policies import parse_stored_trust
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.policy_principals import find_identity_by_arn
from sluice_s3.app.access.principal import Principal, build_principal
from sluice_s3.app.errors import TooManyIdentities
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import ROLE, AccessKey, Identity, Session, console_session_name

MAX_SESSIONS = 5000
"""Open sessions of one user or role, and of the account itself."""
MAX_POLICY = 2048
"""Characters of a session's policies."""
MAX_ARNS = 10
"""Managed policies of a session."""
MAX_CHAINED = 3600
"""Seconds of a session whose role was assumed by another role's session.

"Roles terms and concepts", IAM User Guide.
"""
ASSUME_TAKES = frozenset({"RoleArn", "RoleSessionName", "DurationSeconds", "Policy", "PolicyArns", "ExternalId"})


async def assume_role(call: Call) -> Result:
    """Handle AssumeRole (https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html)."""
    parameters = call.parameters
    parameters.reject_unknown(ASSUME_TAKES)
    arn, name = parameters.require("RoleArn"), parameters.name("RoleSessionName")
    if len(name) < 2:
        raise ValidationError("1 validation error detected: Value at 'roleSessionName' must have length at least 2")
    if call.principal is None or call.principal.kind == "Account":
        raise AccessDenied("Roles may not be assumed by root accounts.")
    seconds = parameters.number("DurationSeconds", 3600, 900, 43_200)
    policies = _limits(call)
    role = await find_identity_by_arn(call.index, arn)
    # a missing role is answered like one that does not trust the caller
    if role is None or role.kind != ROLE or not _trusts(call, role, call.principal, name):
        raise denied(call.principal, "sts:AssumeRole", arn[:256])
    chained = call.principal.kind == "AssumedRole"
    most = documents.read(role).get("max_session", documents.MAX_SESSION)
    if seconds > (MAX_CHAINED if chained else most):
        raise ValidationError("The requested DurationSeconds exceeds the MaxSessionDuration set for this role.")
    session = await _session(call, role.account_id, role.id, name, policies, seconds)
    number = account_number(role.account_id)
    assumed = {
        "AssumedRoleId": f"{role.id}:{name}",
        "Arn": f"arn:aws:sts::{number}:assumed-role/{role.name}/{name}",
    }
    return {"AssumedRoleUser": assumed, "Credentials": _render_session(session)}


def _trusts(call: Call, role: Identity, principal: Principal, name: str) -> bool:
    document = documents.read(role)
    # only roles whose trust policy was stored with ARNs
    trusted = document.get("trusted", {})
    if any(trusted.get(arn, principal.caller.unique_id) != principal.caller.unique_id for arn in _arns(principal)):
        return False
    trust = parse_stored_trust(document["trust"])
    return authorize_assume(principal, call.account_id, role, trust, _with(call, role, name))


def _arns(principal: Principal) -> tuple[str, str]:
    return principal.caller.arn, principal.caller.role


def _with(call: Call, role: Identity, session: str) -> Values:
    condition_values = {
        "sts:rolesessionname": session,
        "sts:externalid": call.parameters.get("ExternalId"),
        "aws:resourceaccount": account_number(role.account_id),
    }
    return with_keys(call.values, condition_values)


def _limits(call: Call) -> list[str]:
    """Return the policies of a session. Raises MalformedPolicyDocument, ValidationError."""
    texts = []
    if call.parameters.has("Policy"):
        texts.append(checked(call.parameters.get("Policy")))
    arns = call.parameters.members("PolicyArns", "arn")
    if len(arns) > MAX_ARNS:
        raise ValidationError(
            "1 validation error detected: Value at 'policyArns' failed to satisfy constraint:"
            f" Member must have length less than or equal to {MAX_ARNS}"
        )
    for arn in arns:
        if arn not in MANAGED:
            raise ValidationError(f"Invalid input: the policy {arn[:256]} does not exist.")
        texts.append(MANAGED[arn].text)
    if call.parameters.has("Policy") and size_of(texts[0]) > MAX_POLICY:
        raise ValidationError(f"The session policy is longer than {MAX_POLICY} characters.")
    return texts


async def get_session_token(call: Call) -> Result:
    """Handle GetSessionToken (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetSessionToken.html)."""
    call.parameters.reject_unknown(frozenset({"DurationSeconds"}))
    principal = call.principal
    if principal is not None and principal.began is not None:
        raise AccessDenied("Cannot call GetSessionToken with session credentials")
    # needs no permission, and only a deny can take it away ("GetSessionToken", "Permissions")
    if principal is None:
        seconds, identity = call.parameters.number("DurationSeconds", 3600, 900, 3600), ""
    else:
        seconds = call.parameters.number("DurationSeconds", 43_200, 900, 129_600)
        identity = principal.caller.unique_id
        if principal.denies("sts:GetSessionToken", "*", call.values):
            raise denied(principal, "sts:GetSessionToken", "*")
    return {"Credentials": _render_session(await _session(call, call.account_id, identity, "", [], seconds))}


async def get_caller_identity(call: Call) -> Result:
    """Handle GetCallerIdentity, which needs no permission.

    https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
    """
    call.parameters.reject_unknown(frozenset())
    number = account_number(call.account_id)
    if call.principal is None:
        return {"Arn": caller_of(call.account_id).arn, "UserId": number, "Account": number}
    return {"Arn": call.principal.caller.arn, "UserId": call.principal.user_id, "Account": number}


async def _session(call: Call, account_id: str, identity: str, name: str, policies: list[str], seconds: int) -> Session:
    return await _add(call.index, account_id, identity, name, policies, seconds)


async def _add(index: Index, account_id: str, identity: str, name: str, policies: list[str], seconds: int) -> Session:
    key, secret, token = generate.temporary_key()
    now = generate.now()
    new = Session(
        key, secret, token, account_id, identity, name, orjson.dumps(policies).decode(), now, now + seconds * 1000
    )
    try:
        await index.add_session(new, MAX_SESSIONS)
    except TooManyIdentities:
        raise LimitExceeded("The user, role or account has too many sessions.") from None
    return new


async def open_console_session(index: Index, key: AccessKey, seconds: int) -> Session:
    """Open the session of a caller who has proved to hold `key`; it ends with that key.

    Raises AccessDenied for a user whose policies deny sts:GetSessionToken, InvalidClientTokenId for a temporary key,
    LimitExceeded.
    """
    if key.token or key.disabled:
        raise InvalidClientTokenId("The access key is temporary or disabled.")
    principal = None if key.holder is None else build_principal(key.holder)
    if principal is not None and principal.denies("sts:GetSessionToken", "*", no_values):
        raise denied(principal, "sts:GetSessionToken", "*")
    identity = "" if principal is None else principal.caller.unique_id
    name = console_session_name(key.access_key, key.secret)
    return await _add(index, key.account_id, identity, name, [], seconds)


def _render_session(session: Session) -> Result:
    return {
        "AccessKeyId": session.access_key,
        "SecretAccessKey": session.secret,
        "SessionToken": session.token,
        "Expiration": generate.date(session.expires),
    }


OPERATIONS = {
    "AssumeRole": assume_role,
    "GetSessionToken": get_session_token,
    "GetCallerIdentity": get_caller_identity,
}


async def run(name: str, call: Call) -> Result:
    """Run an operation of STS, and return its response. Raises IamError and DomainError as `actions.run` does."""
    found = OPERATIONS.get(name)
    if found is None:
        raise NotImplemented(f"The operation {name[:64]} is not implemented.")
    return await found(call)
