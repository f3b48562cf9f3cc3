"""Access keys of users and of the account itself. Only CreateAccessKey returns the secret."""

from __future__ import annotations

from sluice_s3.app.access.account import arn_of
from sluice_s3.app.access.iam import generate
from sluice_s3.app.access.iam.actions import Call, Result, identity_resource, operation, require_action
from sluice_s3.app.access.iam.errors import EntityAlreadyExists, LimitExceeded, NoSuchEntity
from sluice_s3.app.access.iam.paging import list_page
from sluice_s3.app.access.iam.users import MAX_KEYS, require_identity, require_user_name
from sluice_s3.app.errors import AccountExists, NoSuchIdentity, TooManyIdentities
from sluice_s3.app.index.iam.rows import KEY, USER, AccessKey

MAX_CHOSEN_KEYS = 100
"""Keys of a user with service accounts, which AWS has not; CreateAccessKey has AWS's limit."""
_RESOURCE = identity_resource(USER, "UserName")
NEVER = "N/A"
"""Service and region of a key without a known use."""
STATES = {"Active": False, "Inactive": True}


async def _find_key_owner(call: Call) -> tuple[str, str]:
    """Return name and id of the user that the call concerns. Both are empty for the account itself."""
    if call.parameters.has("UserName"):
        user = await require_identity(call, USER, call.parameters.name("UserName", 128))
    elif call.principal is None:
        return "", ""
    else:
        user = await require_identity(call, USER, require_user_name(call))
    return user.name, user.id


def _of(name: str) -> Result:
    return {"UserName": name} if name else {}


@operation("CreateAccessKey", "UserName", on=identity_resource(USER, "UserName"))
async def create_access_key(call: Call) -> Result:
    """Handle CreateAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateAccessKey.html)."""
    name, owner = await _find_key_owner(call)
    key, secret = generate.key()
    added = await call.index.add_key(call.account_id, owner, key, secret, MAX_KEYS)
    key_fields = {
        "AccessKeyId": key,
        "Status": "Active",
        "SecretAccessKey": secret,
        "CreateDate": generate.date(added.created),
    }
    return {"AccessKey": {**_of(name), **key_fields}}


async def add_chosen_key(call: Call, key: str, secret: str) -> None:
    """Add a key that the caller chose, for clients that do so. It needs the permission of CreateAccessKey.

    `UserName` names its user, else it is of the account itself. Raises IamError.
    """
    require_action(call, "iam:CreateAccessKey", await _RESOURCE(call))
    _, owner = await _find_key_owner(call)
    try:
        await call.index.add_key(call.account_id, owner, key, secret, MAX_CHOSEN_KEYS)
    except AccountExists:
        raise EntityAlreadyExists("The access key is taken.") from None
    except TooManyIdentities as error:
        raise LimitExceeded(f"Cannot exceed quota for keys: {error.detail['most']}") from None


async def replace_secret(call: Call, key: str, secret: str, *, disabled: bool) -> None:
    """Replace the secret of a key, and enable it unless `disabled`, in one step.

    It needs the permissions of CreateAccessKey and DeleteAccessKey. `UserName` names its user, else it is of the
    account itself. Raises IamError.
    """
    resource = await _RESOURCE(call)
    for action in ("CreateAccessKey", "DeleteAccessKey"):
        require_action(call, f"iam:{action}", resource)
    _, owner = await _find_key_owner(call)
    try:
        await call.index.set_secret(call.account_id, owner, key, secret, disabled)
    except NoSuchIdentity:
        raise NoSuchEntity(f"The Access Key with id {key} cannot be found.") from None


@operation("ListAccessKeys", "UserName", "Marker", "MaxItems", on=identity_resource(USER, "UserName"))
async def list_access_keys(call: Call) -> Result:
    """Handle ListAccessKeys (https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListAccessKeys.html)."""
    name, owner = await _find_key_owner(call)
    found = await call.index.keys_of(call.account_id, owner)
    answer = list_page(
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


async def _resource_of_key(call: Call) -> str:
    """Return the user that owns a key of the account; `*` for a key of the account itself, or of nobody."""
    key = await _find_key(call)
    user = None if key is None or key.holder is None else key.holder.identity
    return "*" if user is None else arn_of(user)


async def _find_key(call: Call) -> AccessKey | None:
    """Return the account's permanent key of that id."""
    found = await call.index.access_key(call.parameters.key_id())
    return found if found is not None and found.account_id == call.account_id and not found.token else None


@operation("GetAccessKeyLastUsed", "AccessKeyId", on=_resource_of_key)
async def get_access_key_last_used(call: Call) -> Result:
    """Handle GetAccessKeyLastUsed.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetAccessKeyLastUsed.html
    """
    key = await _find_key(call)
    if key is None:
        raise NoSuchEntity(f"The Access Key with id {call.parameters.key_id()} cannot be found.")
    user = None if key.holder is None else key.holder.identity
    use = await call.index.last_use(KEY, key.access_key)
    last_used: Result = {"ServiceName": NEVER, "Region": NEVER}
    if use is not None:
        last_used = {"LastUsedDate": generate.date(use.used), "ServiceName": use.service, "Region": use.region}
    return {**_of(user.name if user else ""), "AccessKeyLastUsed": last_used}


@operation("UpdateAccessKey", "UserName", "AccessKeyId", "Status", on=identity_resource(USER, "UserName"))
async def update_access_key(call: Call) -> Result:
    """Handle UpdateAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_UpdateAccessKey.html)."""
    disabled = call.parameters.parse_choice("Status", STATES)
    _, owner = await _find_key_owner(call)
    await call.index.set_key(call.account_id, owner, call.parameters.key_id(), disabled)
    return {}


@operation("DeleteAccessKey", "UserName", "AccessKeyId", on=identity_resource(USER, "UserName"))
async def delete_access_key(call: Call) -> Result:
    """Handle DeleteAccessKey (https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteAccessKey.html)."""
    _, owner = await _find_key_owner(call)
    await call.index.remove_key(call.account_id, owner, call.parameters.key_id())
    return {}
