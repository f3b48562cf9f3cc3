"""Users, and the account itself as a user."""

from __future__ import annotations

from sluice_s3.app.access.account import account_number, arn_of, caller_of
from sluice_s3.app.access.authorize import authorize_identity
from sluice_s3.app.access.iam import documents, generate
from sluice_s3.app.access.iam.actions import (
    Call,
    Result,
    any_resource,
    denied,
    identity_resource,
    new_identity_resource,
    operation,
    path_resource,
)
from sluice_s3.app.access.iam.errors import ValidationError
from sluice_s3.app.access.iam.paging import list_identities
from sluice_s3.app.errors import IdentityInUse, NoSuchIdentity
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, Identity

MAX_USERS = 5000
""""IAM and AWS STS quotas", IAM User Guide, as for the next ones."""
MAX_GROUPS, MAX_ROLES, MAX_POLICIES, MAX_KEYS, MAX_GROUPS_OF_USER = 300, 1000, 1500, 2, 10


def render_user(user: Identity) -> Result:
    """Return the response element of a user."""
    return {
        "Path": user.path,
        "UserName": user.name,
        "UserId": user.id,
        "Arn": arn_of(user),
        "CreateDate": generate.date(user.created),
    }


def created(call: Call, kind: str, name: str, document: str = "{}") -> Identity:
    """Return a new user, group or role to be added."""
    path = call.parameters.path()
    return Identity(
        generate.unique_id(kind),
        call.account_id,
        kind,
        name,
        name.lower(),
        path,
        document,
        generate.now() // 1000 * 1000,
    )


def check_unused(identity: Identity) -> None:
    """Raise IdentityInUse while the identity has policies."""
    if documents.attached(identity):
        raise IdentityInUse(what="attached")
    if documents.policies(identity):
        raise IdentityInUse(what="policy")


async def rename(call: Call, kind: str, action: str) -> None:
    """Change name and path of a user or group. Raises AccessDenied.

    UpdateUser and UpdateGroup need the permission on the new name and path too ("Renaming an IAM user", User Guide).
    """
    new_name, called, refused = f"New{kind.capitalize()}Name", f"{kind.capitalize()}Name", ""
    name = call.parameters.name(new_name, 64 if kind == USER else 128) if call.parameters.has(new_name) else ""
    path = call.parameters.path("NewPath") if call.parameters.has("NewPath") else ""

    def changed(found: Identity) -> Identity:
        nonlocal refused
        new = found._replace(name=name or found.name, path=path or found.path)
        may = authorize_identity(call.account_id, call.principal, action, arn_of(new), call.values)
        refused = "" if may else arn_of(new)
        return new if may else found

    await call.index.change_identity(call.account_id, kind, call.parameters.name(called, 128), changed)
    if refused:
        raise denied(call.principal, action, refused)


@operation("CreateUser", "UserName", "Path", on=new_identity_resource(USER, "UserName"))
async def create_user(call: Call) -> Result:
    """Handle CreateUser (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateUser.html)."""
    user = created(call, USER, call.parameters.name("UserName"))
    await call.index.add_identity(user, MAX_USERS)
    return {"User": render_user(user)}


@operation("GetUser", "UserName", on=identity_resource(USER, "UserName"))
async def get_user(call: Call) -> Result:
    """Handle GetUser (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetUser.html)."""
    if call.parameters.has("UserName"):
        return {"User": render_user(await require_identity(call, USER, call.parameters.name("UserName", 128)))}
    if call.principal is None:
        account = await call.index.account(call.account_id)
        account_fields = {"UserId": account_number(call.account_id), "Arn": caller_of(call.account_id).arn}
        return {"User": {"Path": "/", **account_fields, "CreateDate": generate.date(account.created if account else 0)}}
    return {"User": render_user(await require_identity(call, USER, require_user_name(call)))}


def require_user_name(call: Call) -> str:
    """Return the calling user, which a call without UserName concerns. Raises ValidationError for a role."""
    assert call.principal is not None
    if not call.principal.name:
        raise ValidationError("Must specify userName when calling with non-User credentials")
    return call.principal.name


async def require_identity(call: Call, kind: str, name: str) -> Identity:
    """Return the account's user, group or role of a name. Raises NoSuchIdentity."""
    found = await call.find_identity(kind, name)
    if found is None:
        raise NoSuchIdentity(kind=kind, name=name)
    return found


@operation("ListUsers", "PathPrefix", "Marker", "MaxItems", on=path_resource(USER))
async def list_users(call: Call) -> Result:
    """Handle ListUsers (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListUsers.html)."""
    return await list_identities(call, USER, "Users", render_user)


@operation("UpdateUser", "UserName", "NewUserName", "NewPath", on=identity_resource(USER, "UserName"))
async def update_user(call: Call) -> Result:
    """Handle UpdateUser (https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateUser.html)."""
    await rename(call, USER, "iam:UpdateUser")
    return {}


@operation("DeleteUser", "UserName", on=identity_resource(USER, "UserName"))
async def delete_user(call: Call) -> Result:
    """Handle DeleteUser (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteUser.html)."""
    await call.index.remove_identity(call.account_id, USER, call.parameters.name("UserName", 128), check_unused)
    return {}


@operation("ListOpenIDConnectProviders", on=any_resource)
async def list_providers(call: Call) -> Result:
    """Handle ListOpenIDConnectProviders: there are none.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListOpenIDConnectProviders.html
    """
    return {"OpenIDConnectProviderList": []}


@operation("GetAccountSummary", on=any_resource)
async def get_account_summary(call: Call) -> Result:
    """Handle GetAccountSummary (https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccountSummary.html)."""
    kinds = {
        "Users": (USER, MAX_USERS),
        "Groups": (GROUP, MAX_GROUPS),
        "Roles": (ROLE, MAX_ROLES),
        "Policies": (POLICY, MAX_POLICIES),
    }
    found = {"AccessKeysPerUserQuota": MAX_KEYS, "GroupsPerUserQuota": MAX_GROUPS_OF_USER}
    for name, (kind, most) in kinds.items():
        found[name] = await call.index.count_identities(call.account_id, kind)
        found[f"{name}Quota"] = most
    keys = await call.index.keys_of(call.account_id, "")
    found["AccountAccessKeysPresent"] = int(bool(keys))
    return {"SummaryMap": [{"key": name, "value": number} for name, number in found.items()]}
