"""Groups of users."""

from __future__ import annotations

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import generate
from sluice_s3.app.access.iam.actions import (
    Call,
    Result,
    identity_resource,
    new_identity_resource,
    operation,
    path_resource,
)
from sluice_s3.app.access.iam.paging import list_identities, list_page
from sluice_s3.app.access.iam.users import (
    MAX_GROUPS,
    MAX_GROUPS_OF_USER,
    check_unused,
    created,
    rename,
    require_identity,
)
from sluice_s3.app.access.iam.users import render_user as shown_user
from sluice_s3.app.index.iam.rows import GROUP, USER, Identity


def render_group(group: Identity) -> Result:
    """Return the response element of a group."""
    return {
        "Path": group.path,
        "GroupName": group.name,
        "GroupId": group.id,
        "Arn": arn_of(group),
        "CreateDate": generate.date(group.created),
    }


@operation("CreateGroup", "GroupName", "Path", on=new_identity_resource(GROUP, "GroupName"))
async def create_group(call: Call) -> Result:
    """Handle CreateGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateGroup.html)."""
    group = created(call, GROUP, call.parameters.name("GroupName", 128))
    await call.index.add_identity(group, MAX_GROUPS)
    return {"Group": render_group(group)}


@operation("GetGroup", "GroupName", "Marker", "MaxItems", on=identity_resource(GROUP, "GroupName"))
async def get_group(call: Call) -> Result:
    """Handle GetGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetGroup.html)."""
    group = await require_identity(call, GROUP, call.parameters.name("GroupName", 128))
    users = await call.index.members_of(group.id)
    return {"Group": render_group(group), **list_page(call, "Users", users, lambda user: user.folded, shown_user)}


@operation("ListGroups", "PathPrefix", "Marker", "MaxItems", on=path_resource(GROUP))
async def list_groups(call: Call) -> Result:
    """Handle ListGroups (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListGroups.html)."""
    return await list_identities(call, GROUP, "Groups", render_group)


@operation("UpdateGroup", "GroupName", "NewGroupName", "NewPath", on=identity_resource(GROUP, "GroupName"))
async def update_group(call: Call) -> Result:
    """Handle UpdateGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateGroup.html)."""
    await rename(call, GROUP, "iam:UpdateGroup")
    return {}


@operation("DeleteGroup", "GroupName", on=identity_resource(GROUP, "GroupName"))
async def delete_group(call: Call) -> Result:
    """Handle DeleteGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteGroup.html)."""
    await call.index.remove_identity(call.account_id, GROUP, call.parameters.name("GroupName", 128), check_unused)
    return {}


@operation("AddUserToGroup", "GroupName", "UserName", on=identity_resource(GROUP, "GroupName"))
async def add_user_to_group(call: Call) -> Result:
    """Handle AddUserToGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_AddUserToGroup.html)."""
    user, group = call.parameters.name("UserName", 128), call.parameters.name("GroupName", 128)
    await call.index.join_group(call.account_id, (USER, user), (GROUP, group), MAX_GROUPS_OF_USER)
    return {}


@operation("RemoveUserFromGroup", "GroupName", "UserName", on=identity_resource(GROUP, "GroupName"))
async def remove_user_from_group(call: Call) -> Result:
    """Handle RemoveUserFromGroup (https://docs.aws.amazon.com/IAM/latest/APIReference/API_RemoveUserFromGroup.html)."""
    user, group = call.parameters.name("UserName", 128), call.parameters.name("GroupName", 128)
    await call.index.leave_group(call.account_id, (USER, user), (GROUP, group))
    return {}


@operation("ListGroupsForUser", "UserName", "Marker", "MaxItems", on=identity_resource(USER, "UserName"))
async def list_groups_for_user(call: Call) -> Result:
    """Handle ListGroupsForUser (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListGroupsForUser.html)."""
    user = await require_identity(call, USER, call.parameters.name("UserName", 128))
    found = await call.index.groups_of(user.id)
    return list_page(call, "Groups", found, lambda group: group.folded, render_group)
