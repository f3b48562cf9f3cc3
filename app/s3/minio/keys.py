"""Access keys as MinIO sees them: that of a user or of the account, and the service accounts below it."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from sluice_s3.app.access.account import arn_of, caller_of
from sluice_s3.app.access.account_input import NewAccount
from sluice_s3.app.access.iam.actions import denied
from sluice_s3.app.index.iam.rows import USER, Identity, UserKey
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.minio.call import AdminCall
from sluice_s3.app.s3.minio.errors import no_such


class Parent(NamedTuple):
    """The owner of service accounts: a user, or the account itself (`user` is None)."""

    name: str
    """The access key of the parent itself."""
    user: Identity | None
    keys: list[UserKey]
    """Its service accounts."""

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that name it to IAM."""
        return {} if self.user is None else {"UserName": self.user.name}


def check_pair(access_key: str, secret: str) -> None:
    """Raise InvalidArgument unless these may be an access key and its secret."""
    try:
        NewAccount.model_validate({"access_key": access_key, "secret_key": secret})
    except ValidationError as error:
        message = error.errors(include_input=False, include_url=False)[0]["msg"]
        raise InvalidArgument(message.removeprefix("Value error, ")) from None


async def parent_of_user(call: AdminCall, user: Identity) -> Parent:
    """Return a user with its service accounts; the caller's right is checked before."""
    keys = await call.caller.index.keys_of(call.account_id, user.id)
    return Parent(user.name, user, [key for key in keys if key.access_key != user.name])


async def parent_of_account(call: AdminCall) -> Parent:
    """Return the account itself. Its oldest key is the parent of the others."""
    keys = await call.caller.index.keys_of(call.account_id, "")
    return Parent(keys[0].access_key if keys else call.account_id, None, keys[1:])


async def find_parent(call: AdminCall, name: str, action: str) -> Parent:
    """Return the parent of a name, empty for the caller, who must be allowed `action` on it.

    A name is that of a user, or a key of the account itself. Raises IamError, AdminError.
    """
    if not name and call.caller.principal is not None:
        name = call.caller.principal.name
    user = await call.caller.find_identity(USER, name) if name else None
    if user is not None:
        call.require(action, arn_of(user))
        if user.name != name:
            raise no_such(USER, name)
        return await parent_of_user(call, user)
    _require_account(call, action)
    account = await parent_of_account(call)
    if name and name != account.name and all(key.access_key != name for key in account.keys):
        raise no_such(USER, name)
    return account


def _require_account(call: AdminCall, action: str) -> None:
    """Raise AccessDenied unless the caller is the account itself: as in IAM, its users cannot manage its own keys."""
    if call.caller.principal is not None:
        raise denied(call.caller.principal, action, caller_of(call.account_id).arn)


async def find_service_account(call: AdminCall, key: str, action: str) -> tuple[Parent, UserKey]:
    """Return a service account with its parent; the caller must be allowed `action` on that.

    Raises IamError, AdminError.
    """
    found = await call.caller.index.access_key(key)
    user = None if found is None or found.holder is None else found.holder.identity
    if found is not None and found.account_id == call.account_id and user is not None and user.kind == USER:
        call.require(action, arn_of(user))
        parent = await parent_of_user(call, user)
    else:
        _require_account(call, action)
        parent = await parent_of_account(call)
    for one in parent.keys:
        if one.access_key == key:
            return parent, one
    raise no_such("key", key)
