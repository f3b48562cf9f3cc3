"""Access keys of users and of the account itself. Only CreateAccessKey returns the secret."""

from __future__ import annotations

from sluice_s3.app.access.iam import generate
from sluice_s3.app.access.iam.actions import Call, Result, named, operation
from sluice_s3.app.access.iam.paging import part
from sluice_s3.app.access.iam.users import MAX_KEYS, present, whose_name
from sluice_s3.app.index.identity_rows import USER

STATES = {"Active": False, "Inactive": True}


async def _whose(call: Call) -> tuple[str, str]:
    """Return name and id of the user that the call concerns. Both are empty for the account itself."""
    if call.parameters.has("UserName"):
        user = await present(call, USER, call.parameters.name("UserName", 128))
    elif call.principal is None:
        return "", ""
    else:
        user = await present(call, USER, whose_name(call))
    return user.name, user.id


def _of(name: str) -> Result:
    return {"UserName": name} if name else {}


@operation("CreateAccessKey", "UserName", on=named(USER, "UserName"))
async def create_access_key(call: Call) -> Result:
    """Handle CreateAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateAccessKey.html)."""
    name, whose = await _whose(call)
    key, secret = generate.key()
    added = await call.index.add_key(call.account_id, whose, key, secret, MAX_KEYS)
    told = {
        "AccessKeyId": key,
        "Status": "Active",
        "SecretAccessKey": secret,
        "CreateDate": generate.date(added.created),
    }
    return {"AccessKey": {**_of(name), **told}}


@operation("ListAccessKeys", "UserName", "Marker", "MaxItems", on=named(USER, "UserName"))
async def list_access_keys(call: Call) -> Result:
    """Handle ListAccessKeys (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListAccessKeys.html)."""
    name, whose = await _whose(call)
    found = await call.index.keys_of(call.account_id, whose)
    answer = part(
        call,
        "AccessKeyMetadata",
        found,
        lambda key: key.access_key,
        lambda key: {
            **_of(name),
            "AccessKeyId": key.access_key,
            "Status": "Inactive" if key.disabled else "Active",
            "CreateDate": generate.date(key.created),
        },
    )
    return {**_of(name), **answer}


@operation("UpdateAccessKey", "UserName", "AccessKeyId", "Status", on=named(USER, "UserName"))
async def update_access_key(call: Call) -> Result:
    """Handle UpdateAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateAccessKey.html)."""
    disabled = call.parameters.one_of("Status", STATES)
    _, whose = await _whose(call)
    await call.index.set_key(call.account_id, whose, call.parameters.key_id(), disabled)
    return {}


@operation("DeleteAccessKey", "UserName", "AccessKeyId", on=named(USER, "UserName"))
async def delete_access_key(call: Call) -> Result:
    """Handle DeleteAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteAccessKey.html)."""
    _, whose = await _whose(call)
    await call.index.remove_key(call.account_id, whose, call.parameters.key_id())
    return {}
