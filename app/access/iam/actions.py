"""The table of operations, and the only way to call them: permission is checked first.

An operation without the resource of its permission cannot be registered (law 7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.authorize import authorize_identity, no_values
from sluice_s3.app.access.iam.errors import AccessDenied, InvalidClientTokenId, NotImplemented, to_s3_error
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.policy.actions import IAM_ACTIONS
from sluice_s3.app.access.policy.variables import Values
from sluice_s3.app.access.principal import Principal
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.index.engine.audit_trail import name_change
from sluice_s3.app.index.iam.rows import Identity

Result = dict[str, Any]
"""Names and values of a response: strings, numbers, booleans, `Document`, nested results, lists."""


class Document(str):
    """The text of a policy, percent-encoded within XML."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request for an operation: its caller, account and parameters."""

    index: Index
    account_id: str
    principal: Principal | None
    """None: the account itself, by a key of its own, or its operator."""
    parameters: Parameters
    values: Values = no_values

    async def find_identity(self, kind: str, name: str) -> Identity | None:
        """Return the account's user, group or role of a name; None if there is none."""
        return await self.index.identity(self.account_id, kind, name)


Handler = Callable[[Call], Awaitable[Result]]
Resource = Callable[[Call], Awaitable[str]]


class Operation(NamedTuple):
    """An operation of IAM under its AWS name."""

    name: str
    handler: Handler
    resource: Resource
    """The ARN on which `iam:NAME` is required."""
    parameters: frozenset[str]


ACTIONS: dict[str, Operation] = {}
READS = ("Get", "List", "Simulate")
"""Beginnings of the names of operations that change nothing. `GetSessionToken` makes a key, and is none."""
POLICY, POLICY_KEY = "PolicyArn", "iam:policyarn"
"""The parameter whose operations support the condition key `iam:PolicyARN`, and that key in lower case.

"Actions, resources, and condition keys for AWS Identity and Access Management", Service Authorization Reference.
"""


def operation(name: str, *parameters: str, on: Resource) -> Callable[[Handler], Handler]:
    """Register a handler. Raises ValueError for a name that is no IAM action, or is taken."""
    if f"iam:{name}" not in IAM_ACTIONS or name in ACTIONS:
        raise ValueError(f"{name} is no action of IAM, or there already")

    def register(handler: Handler) -> Handler:
        ACTIONS[name] = Operation(name, handler, on, frozenset(parameters))
        return handler

    return register


def identity_resource(kind: str, parameter: str) -> Resource:
    """Return the user, group or role that a parameter names. Without it, the calling user."""

    async def resource(call: Call) -> str:
        name = call.parameters.get(parameter)
        if not name and call.principal is not None:
            return call.principal.arn
        found = await call.find_identity(kind, name) if name else None
        return arn(call.account_id, kind, "/", name) if found is None else arn_of(found)

    return resource


def new_identity_resource(kind: str, parameter: str) -> Resource:
    """Return the resource of an identity to create, with its path."""

    async def resource(call: Call) -> str:
        return arn(call.account_id, kind, call.parameters.path(), call.parameters.get(parameter))

    return resource


def path_resource(kind: str) -> Resource:
    """Return the resource of all identities below a path."""

    async def resource(call: Call) -> str:
        return arn(call.account_id, kind, call.parameters.path_prefix(), "")

    return resource


def parameter_resource(parameter: str) -> Resource:
    """Return the resource whose ARN a parameter is."""

    async def resource(call: Call) -> str:
        return call.parameters.get(parameter)

    return resource


async def any_resource(call: Call) -> str:
    """Return `*`, for actions without a resource."""
    return "*"


def with_keys(values: Values, condition_values: Mapping[str, str]) -> Values:
    """Add an operation's condition keys (lower case, empty ones absent) to those of every request."""

    def value(key: str) -> tuple[str, ...] | None:
        if key in condition_values:
            return (condition_values[key],) if condition_values[key] else None
        found = values(key)
        return None if found is None else tuple(found)

    return value


def is_read(name: str) -> bool:
    """Return whether an operation of IAM or STS changes nothing, by AWS's name."""
    return name.startswith(READS) and name != "GetSessionToken"


async def run(name: str, call: Call) -> Result:
    """Run an operation of IAM, and return its response.

    Raises IamError, and DomainError for what is no fault of the client.
    """
    found = ACTIONS.get(name)
    if found is None:
        raise NotImplemented(f"The operation {name[:64]} is not implemented.")
    refuse_session(call.principal)
    call.parameters.reject_unknown(found.parameters)
    if POLICY in found.parameters:
        call = replace(call, values=with_keys(call.values, {POLICY_KEY: call.parameters.get(POLICY)}))
    try:
        resource = await found.resource(call)
        if not is_read(name):
            name_change(f"iam:{name}", resource)
        require_action(call, f"iam:{name}", resource)
        return await found.handler(call)
    except DomainError as error:
        answer = to_s3_error(error)
        if answer is None:
            raise
        raise answer from None


def refuse_session(principal: Principal | None) -> None:
    """Raise InvalidClientTokenId for a key of GetSessionToken, which cannot call IAM.

    "GetSessionToken", API reference of STS: without MFA, which is not supported.
    """
    if principal is not None and principal.began is not None and principal.kind != "AssumedRole":
        raise InvalidClientTokenId("The security token included in the request is invalid")


def require_action(call: Call, action: str, resource: str) -> None:
    """Raise AccessDenied unless the caller may do `action` on an ARN of its account."""
    if not authorize_identity(call.account_id, call.principal, action, resource, call.values):
        raise denied(call.principal, action, resource)


def denied(principal: Principal | None, action: str, resource: str) -> AccessDenied:
    """Return the error for a caller without the permission."""
    who = "" if principal is None else principal.caller.arn
    return AccessDenied(f"User: {who} is not authorized to perform: {action} on resource: {resource}")
