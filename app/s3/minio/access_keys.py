"""Service accounts: keys that a user or the account has besides its own, with all its rights."""

from __future__ import annotations

from typing import Any, Literal

import orjson
from pydantic import AwareDatetime, Field

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.access_keys import add_chosen_key, replace_secret
from sluice_s3.app.access.policy.managed import ARN_START, MANAGED
from sluice_s3.app.index.iam.rows import GROUP, POLICY, USER, UserKey
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.minio.call import AdminCall, Fields, done
from sluice_s3.app.s3.minio.errors import not_here
from sluice_s3.app.s3.minio.keys import (
    Parent,
    check_pair,
    find_parent,
    find_service_account,
    parent_of_account,
    parent_of_user,
)
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.wire.response import Response

LIST = "iam:ListAccessKeys"
STATES = {"on": "Active", "off": "Inactive", "enabled": "Active", "disabled": "Inactive"}
NEVER = "1970-01-01T00:00:00Z"
"""How MinIO writes that a key does not expire."""
KEPT_NOWHERE = "a name, description, policy or expiry of an access key"


class NewServiceAccount(Fields):
    """The body of add-service-account."""

    target_user: str = Field("", alias="targetUser")
    access_key: str | None = Field(None, alias="accessKey")
    secret_key: str | None = Field(None, alias="secretKey")
    status: Literal["", "enabled"] = ""
    policy: Any = None
    name: str = ""
    description: str = ""
    expiration: AwareDatetime | None = None


class ServiceAccountChange(Fields):
    """The body of update-service-account."""

    secret_key: str = Field("", alias="newSecretKey")
    status: str = Field("", alias="newStatus")
    policy: Any = Field(None, alias="newPolicy")
    name: str = Field("", alias="newName")
    description: str = Field("", alias="newDescription")
    expiration: AwareDatetime | None = Field(None, alias="newExpiration")


def _refuse_what_is_not_kept(body: NewServiceAccount | ServiceAccountChange) -> None:
    expires = body.expiration is not None and body.expiration.timestamp() > 0
    if body.policy is not None or body.name or body.description or expires:
        raise not_here(KEPT_NOWHERE)


def _render(parent: Parent, key: UserKey) -> dict[str, Any]:
    return {
        "parentUser": parent.name,
        "accountStatus": "off" if key.disabled else "on",
        "impliedPolicy": True,
        "accessKey": key.access_key,
        "expiration": NEVER,
    }


@route("PUT", "add-service-account")
async def add_service_account(call: AdminCall) -> Response:
    """Add a key to a user or to the account, and return it, encrypted."""
    body = await call.read(NewServiceAccount)
    _refuse_what_is_not_kept(body)
    key, secret = generate.key()
    key, secret = body.access_key or key, body.secret_key or secret
    check_pair(key, secret)
    parent = await find_parent(call, body.target_user, "iam:CreateAccessKey")
    await add_chosen_key(call.with_parameters(**parent.parameters), key, secret)
    return await call.encrypted({"credentials": {"accessKey": key, "secretKey": secret, "expiration": NEVER}})


@route("GET", "list-service-accounts")
async def list_service_accounts(call: AdminCall) -> Response:
    """Return the service accounts of a user, or of the caller."""
    parent = await find_parent(call, call.request.query.get("user", ""), LIST)
    return await call.encrypted({"accounts": [_render(parent, key) for key in parent.keys]})


@route("GET", "list-access-keys-bulk")
async def list_access_keys_bulk(call: AdminCall) -> Response:
    """Return service accounts by user: of those named, of all, or of the caller."""
    kind = call.request.query.get("listType", "all")
    if kind == "sts-only":
        raise not_here("a list of temporary keys")
    names = call.parameters("users")
    if call.request.query.get("all") == "true":
        call.require(LIST, arn(call.account_id, USER, "/", "*"))
        parents = [await parent_of_account(call)] if call.caller.principal is None else []
        parents += [await parent_of_user(call, user) for user in await call.all_of(USER)]
    else:
        parents = [await find_parent(call, name, LIST) for name in names or [""]]
    found = {
        parent.name: {
            "serviceAccounts": [] if kind == "users-only" else [_render(parent, key) for key in parent.keys],
            "stsKeys": [],
        }
        for parent in parents
        if kind != "svcacc-only" or parent.keys
    }
    return await call.encrypted(found)


async def _policy_text(call: AdminCall, parent: Parent) -> str:
    """Return one policy with the statements of all that hold for a parent. Raises IamError."""
    if parent.user is None:
        return MANAGED[f"{ARN_START}AdministratorAccess"].text
    index, statements = call.caller.index, []
    for action in ("ListGroupsForUser", "GetUserPolicy"):
        call.require(f"iam:{action}", arn_of(parent.user))
    for one in (parent.user, *await index.groups_of(parent.user.id, GROUP)):
        if one.kind == GROUP:
            call.require("iam:GetGroupPolicy", arn_of(one))
        attached = await index.groups_of(one.id, POLICY)
        for policy in (*documents.attached(one), *map(arn_of, attached)):
            call.require("iam:GetPolicyVersion", policy, policy)
        texts = [MANAGED[policy].text for policy in documents.attached(one)]
        texts += [text for owner in (one, *attached) for text in documents.policies(owner).values()]
        for text in texts:
            found = orjson.loads(text)["Statement"]
            statements += found if isinstance(found, list) else [found]
    return orjson.dumps({"Version": "2012-10-17", "Statement": statements}).decode()


async def _render_whole(call: AdminCall) -> dict[str, Any]:
    parent, key = await find_service_account(call, call.parameter("accessKey"), LIST)
    found = _render(parent, key) | {"policy": await _policy_text(call, parent)}
    del found["expiration"]  # only in lists do clients need one
    return found


@route("GET", "info-service-account")
async def info_service_account(call: AdminCall) -> Response:
    """Return a service account with the policy of its parent."""
    return await call.encrypted(await _render_whole(call))


@route("GET", "info-access-key")
async def info_access_key(call: AdminCall) -> Response:
    """Return the same to later clients."""
    found = await _render_whole(call)
    more = {"userType": "Service Account", "userProvider": "builtin", "AccessKey": found["accessKey"]}
    return await call.encrypted(found | more)


@route("GET", "temporary-account-info")
async def temporary_account_info(call: AdminCall) -> Response:
    """Refuse a key that is no service account: a temporary key has no description here."""
    await _render_whole(call)
    raise InvalidArgument("This access key is not a temporary one.", ArgumentName="accessKey")


@route("POST", "update-service-account")
async def update_service_account(call: AdminCall) -> Response:
    """Change the secret or the state of a service account."""
    access_key = call.parameter("accessKey")
    parent, key = await find_service_account(call, access_key, "iam:UpdateAccessKey")
    body = await call.read(ServiceAccountChange)
    _refuse_what_is_not_kept(body)
    if body.status and body.status not in STATES:
        raise InvalidArgument("A status is on or off.", ArgumentName="newStatus", ArgumentValue=body.status[:64])
    if body.secret_key:
        check_pair(access_key, body.secret_key)
        as_parent = call.with_parameters(**parent.parameters)
        await replace_secret(as_parent, access_key, body.secret_key, disabled=key.disabled)
    if body.status:
        state = STATES[body.status]
        await call.iam("UpdateAccessKey", AccessKeyId=access_key, Status=state, **parent.parameters)
    return done(204)


@route("DELETE", "delete-service-account")
async def delete_service_account(call: AdminCall) -> Response:
    """Remove a service account."""
    access_key = call.parameter("accessKey")
    parent, _ = await find_service_account(call, access_key, "iam:DeleteAccessKey")
    await call.iam("DeleteAccessKey", AccessKeyId=access_key, **parent.parameters)
    return done(204)
