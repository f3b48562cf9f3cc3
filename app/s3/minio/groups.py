"""Groups of users, as those of IAM."""

from __future__ import annotations

from pydantic import Field

from sluice_s3.app.access.account import arn, arn_of
from sluice_s3.app.access.iam import generate
from sluice_s3.app.index.iam.rows import GROUP
from sluice_s3.app.s3.minio.call import AdminCall, Fields, done, plain
from sluice_s3.app.s3.minio.errors import no_such, not_here
from sluice_s3.app.s3.minio.policies import detach
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.wire.response import Response


class Members(Fields):
    """The body of update-group-members."""

    group: str
    members: list[str] | None = Field(None, max_length=1000)
    status: str = Field("", alias="groupStatus")
    is_remove: bool = Field(False, alias="isRemove")


@route("PUT", "update-group-members")
async def update_group_members(call: AdminCall) -> Response:
    """Add users to a group, which is made if it is missing; or take users out; without users remove the group."""
    body = await call.read(Members, encrypted=False)
    if body.status not in ("", "enabled"):
        raise not_here("a disabled group")
    members = body.members or []
    if not body.is_remove:
        if await call.caller.find_identity(GROUP, body.group) is None:
            await call.iam("CreateGroup", GroupName=body.group)
        for member in members:
            await call.iam("AddUserToGroup", GroupName=body.group, UserName=member)
        return done()
    for member in members:
        await call.iam("RemoveUserFromGroup", GroupName=body.group, UserName=member)
    if not members:
        await _remove(call, body.group)
    return done()


async def _remove(call: AdminCall, name: str) -> None:
    await call.iam("GetGroup", GroupName=name)
    group = await call.caller.find_identity(GROUP, name)
    if group is not None and not await call.caller.index.members_of(group.id):
        await detach(call, GROUP, name, await call.attached_to(group))
    await call.iam("DeleteGroup", GroupName=name)


@route("GET", "group")
async def group_info(call: AdminCall) -> Response:
    """Return a group with its members and policies."""
    name = call.parameter("group")
    await call.iam("GetGroup", GroupName=name)
    group = await call.caller.find_identity(GROUP, name)
    if group is None:
        raise no_such(GROUP, name)
    call.require("iam:ListAttachedGroupPolicies", arn_of(group))
    return plain(
        {
            "name": group.name,
            "status": "enabled",
            "members": [user.name for user in await call.caller.index.members_of(group.id)],
            "policy": ",".join(await call.policies_of(group)),
            "updatedAt": generate.date(group.created),
        }
    )


@route("GET", "groups")
async def list_groups(call: AdminCall) -> Response:
    """Return the names of all groups."""
    call.require("iam:ListGroups", arn(call.account_id, GROUP, "/", ""))
    return plain([group.name for group in await call.all_of(GROUP)])
