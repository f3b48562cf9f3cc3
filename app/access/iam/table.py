"""The table of operations, and the one way into them: the right is asked before anything else is done.

An operation that does not say on what its right is asked cannot be registered (law 7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from app.access.account import arn, arn_of
from app.access.authorize import authorize_identity, no_values
from app.access.iam.errors import AccessDenied, InvalidClientTokenId, NotImplemented, from_domain
from app.access.iam.parameters import Parameters
from app.access.policy.actions import IAM_ACTIONS
from app.access.policy.variables import Values
from app.access.principal import Principal
from app.errors import DomainError
from app.index import Index
from app.index.identity_rows import Identity

Result = dict[str, Any]
"""Names and values of an answer: texts, numbers, truths, `Document`, further objects, and lists of any of these."""


class Document(str):
    """The text of a policy, which is percent-encoded where it is a part of XML."""


@dataclass(frozen=True, slots=True)
class Call:
    """An operation that is asked for, by whom, and on whose account."""

    index: Index
    account_id: str
    principal: Principal | None
    """None: the account itself, with a key of its own, or its operator."""
    parameters: Parameters
    values: Values = no_values

    async def one(self, kind: str, name: str) -> Identity | None:
        """The account's user, group or role of a name."""
        return await self.index.identity(self.account_id, kind, name)


Handler = Callable[[Call], Awaitable[Result]]
Resource = Callable[[Call], Awaitable[str]]


class Operation(NamedTuple):
    """An operation of IAM under its AWS name."""

    name: str
    handler: Handler
    resource: Resource
    """The ARN that the right `iam:NAME` is asked on."""
    takes: frozenset[str]


TABLE: dict[str, Operation] = {}
POLICY = "PolicyArn"
"""Whose operations rights may depend on by `iam:PolicyARN` ("Actions, resources, and condition keys for AWS
Identity and Access Management", Service Authorization Reference)."""


def operation(name: str, *takes: str, on: Resource) -> Callable[[Handler], Handler]:
    """Register a handler. Raises ValueError for a name that policies cannot say, or that is taken."""
    if f"iam:{name}" not in IAM_ACTIONS or name in TABLE:
        raise ValueError(f"{name} is no action of IAM, or there already")

    def register(handler: Handler) -> Handler:
        TABLE[name] = Operation(name, handler, on, frozenset(takes))
        return handler

    return register


def named(kind: str, parameter: str) -> Resource:
    """The user, group or role that a parameter names; without it the user who asks."""

    async def resource(call: Call) -> str:
        name = call.parameters.get(parameter)
        if not name and call.principal is not None:
            return call.principal.arn
        found = await call.one(kind, name) if name else None
        return arn(call.account_id, kind, "/", name) if found is None else arn_of(found)

    return resource


def new(kind: str, parameter: str) -> Resource:
    """One that is to be made, with its path."""

    async def resource(call: Call) -> str:
        return arn(call.account_id, kind, call.parameters.path(), call.parameters.get(parameter))

    return resource


def listed(kind: str) -> Resource:
    """Those of a path."""

    async def resource(call: Call) -> str:
        return arn(call.account_id, kind, call.parameters.path_prefix(), "")

    return resource


async def anything(call: Call) -> str:
    """Of actions that are on no resource."""
    return "*"


def with_keys(values: Values, given: Mapping[str, str]) -> Values:
    """Condition keys of an operation (in lower case, the empty ones not there) besides those of every request."""

    def value(key: str) -> tuple[str, ...] | None:
        if key in given:
            return (given[key],) if given[key] else None
        found = values(key)
        return None if found is None else tuple(found)

    return value


async def run(name: str, call: Call) -> Result:
    """The answer of an operation of IAM. Raises IamError, and DomainError for what is no fault of the client's."""
    found = TABLE.get(name)
    if found is None:
        raise NotImplemented(f"The operation {name[:64]} is not implemented.")
    principal = call.principal
    if principal is not None and principal.began is not None and principal.kind != "AssumedRole":
        # API reference of STS, GetSessionToken: no IAM with its keys without MFA, which there is none of
        raise InvalidClientTokenId("The security token included in the request is invalid")
    call.parameters.check_known(found.takes)
    if POLICY in found.takes:
        call = replace(call, values=with_keys(call.values, {"iam:policyarn": call.parameters.get(POLICY)}))
    try:
        resource = await found.resource(call)
        if not authorize_identity(call.account_id, principal, f"iam:{name}", resource, call.values):
            raise denied(principal, f"iam:{name}", resource)
        return await found.handler(call)
    except DomainError as error:
        answer = from_domain(error)
        if answer is None:
            raise
        raise answer from None


def denied(principal: Principal | None, action: str, resource: str) -> AccessDenied:
    """The answer to somebody who may not."""
    who = "" if principal is None else principal.caller.arn
    return AccessDenied(f"User: {who} is not authorized to perform: {action} on resource: {resource}")
