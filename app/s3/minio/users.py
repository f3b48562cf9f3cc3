"""Users: a user of MinIO is one of IAM with a key of the same name."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.access_keys import add_chosen_key, replace_secret
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.users import check_unused
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.iam.rows import GROUP, USER, Identity
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.minio.call import AdminCall, Fields, done, plain
from sluice_s3.app.s3.minio.errors import AdminError, no_such
from sluice_s3.app.s3.minio.keys import check_pair
from sluice_s3.app.s3.minio.policies import attach, detach, require_arn
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.wire.response import Response

ENABLED, DISABLED = "enabled", "disabled"
STATES = {ENABLED: "Active", DISABLED: "Inactive"}
"""MinIO's states of users, and IAM's of keys."""


class NewUser(Fields):
    """The body of add-user."""

    secret_key: str = Field("", alias="secretKey")
    policy: str = ""
    status: Literal["", "enabled", "disabled"] = ""


async def _render(call: AdminCall, user: Identity) -> dict[str, Any]:
    """Return a user with what IAM tells by these actions. Raises IamError."""
    for action in ("ListAttachedUserPolicies", "ListAccessKeys", "ListGroupsForUser"):
        call.require(f"iam:{action}", arn_of(user))
    index = call.caller.index
    keys = await index.keys_of(call.account_id, user.id)
    own = [key for key in keys if key.access_key == user.name]
    return {
        "policyName": ",".join(await call.policies_of(user)),
        "status": ENABLED if any(not key.disabled for key in own or keys) else DISABLED,
        "memberOf": [group.name for group in await index.groups_of(user.id)],
        "updatedAt": generate.date(user.created),
    }


@route("GET", "list-users")
async def list_users(call: AdminCall) -> Response:
    """Return all users with policies and states, encrypted."""
    call.require("iam:ListUsers", arn(call.account_id, USER, "/", ""))
    return await call.encrypted({user.name: await _render(call, user) for user in await call.all_of(USER)})


@route("GET", "user-info")
async def user_info(call: AdminCall) -> Response:
    """Return a user."""
    name = call.parameter("accessKey")
    await call.iam("GetUser", UserName=name)
    return plain(await _render(call, await require_user(call, name)))


async def require_user(call: AdminCall, name: str) -> Identity:
    """Return a user; the caller's right is checked before. Raises AdminError, for another case of its name too."""
    found = await call.caller.find_identity(USER, name)
    if found is None or found.name != name:
        raise no_such(USER, name)
    return found


@route("PUT", "add-user")
async def add_user(call: AdminCall) -> Response:
    """Add a user with its key, or replace the secret of a user."""
    name = call.parameter("accessKey")
    as_user, index = call.with_parameters(UserName=name), call.caller.index
    existing = await call.caller.find_identity(USER, name)
    user_arn = arn(call.account_id, USER, "/", name) if existing is None else arn_of(existing)
    for action in ("CreateAccessKey",) if existing else ("CreateUser", "CreateAccessKey"):
        call.require(f"iam:{action}", user_arn)
    if existing is not None and existing.name != name:  # IAM's names are one in any case, MinIO's are not
        raise AdminError(409, "EntityAlreadyExists", f"A user with the name {existing.name} exists.")
    body = await call.read(NewUser)
    check_pair(name, body.secret_key)
    policies = body.policy.split(",") if body.policy else []
    arns = [await require_arn(call, policy) for policy in policies]
    for policy in arns:
        call.require("iam:AttachUserPolicy", user_arn, policy)
    if body.status == DISABLED:
        call.require("iam:UpdateAccessKey", user_arn)
    if existing is None:
        await call.iam("CreateUser", UserName=name)
        try:
            await add_chosen_key(as_user, name, body.secret_key)
        except (IamError, DomainError):
            await index.remove_identity(call.account_id, USER, name, check_unused)
            raise
    elif any(key.access_key == name for key in await index.keys_of(call.account_id, existing.id)):
        await replace_secret(as_user, name, body.secret_key, disabled=False)
    else:
        await add_chosen_key(as_user, name, body.secret_key)
    await attach(call, USER, name, arns)
    if body.status == DISABLED:
        await _set_status(call, name, DISABLED)
    return done()


@route("PUT", "set-user-status")
async def set_user_status(call: AdminCall) -> Response:
    """Disable a user with all its keys, or enable it: the key of its name alone."""
    status = call.parameter("status")
    if status not in STATES:
        raise InvalidArgument("A status is enabled or disabled.", ArgumentName="status", ArgumentValue=status[:64])
    await _set_status(call, call.parameter("accessKey"), status)
    return done()


async def _set_status(call: AdminCall, name: str, status: str) -> None:
    found = await call.caller.find_identity(USER, name)
    call.require("iam:UpdateAccessKey", arn(call.account_id, USER, "/", name) if found is None else arn_of(found))
    user = await require_user(call, name)
    keys = [key.access_key for key in await call.caller.index.keys_of(call.account_id, user.id)]
    if status == ENABLED:  # service accounts may have been disabled each for itself
        if name not in keys:
            raise no_such("key", name)
        keys = [name]
    for key in keys:
        await call.iam("UpdateAccessKey", UserName=name, AccessKeyId=key, Status=STATES[status])


@route("DELETE", "remove-user")
async def remove_user(call: AdminCall) -> Response:
    """Remove a user with its keys, policies and memberships."""
    name = call.parameter("accessKey")
    await call.iam("GetUser", UserName=name)
    user = await require_user(call, name)
    call.require("iam:DeleteUser", arn_of(user))  # before anything of it is gone
    for key in await call.caller.index.keys_of(call.account_id, user.id):
        await call.iam("DeleteAccessKey", UserName=name, AccessKeyId=key.access_key)
    await detach(call, USER, name, await call.attached_to(user))
    for policy in documents.policies(user):
        await call.iam("DeleteUserPolicy", UserName=name, PolicyName=policy)
    for group in await call.caller.index.groups_of(user.id, GROUP):
        await call.iam("RemoveUserFromGroup", UserName=name, GroupName=group.name)
    await call.iam("DeleteUser", UserName=name)
    return done()
