"""`sluice iam …`: users, groups, roles and keys of an account, by IAM's operations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, fail, load_settings
from sluice_s3.app.cli.opened_index import run_with_index

if TYPE_CHECKING:
    from sluice_s3.app.index import Index


def iam_command(
    account: Annotated[str, typer.Argument(help="Canonical id, number of 12 digits, or access key of the account.")],
    action: Annotated[str, typer.Argument(help="An operation of IAM, e.g. CreateUser, PutUserPolicy, ListRoles.")],
    parameters: Annotated[
        list[str] | None, typer.Argument(help="NAME=VALUE; a value `@FILE` is what is in that file.")
    ] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Run an operation of IAM as the account itself and print its answer as JSON.

    Works beside a running server.

    Exit codes: 1 the operation was refused, 3 no such account.
    """
    values = dict(map(_parameter, parameters or ()))
    settings = load_settings(data=data, config=config, index=index)
    print(json.dumps(run_with_index(settings, lambda opened: _run(opened, account, action, values)), indent=2))


def _parameter(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        fail(f"{text!r} is not NAME=VALUE", 2)
    if value.startswith("@"):
        try:
            with open(value[1:]) as file:
                value = file.read()
        except (OSError, UnicodeDecodeError) as error:
            fail(f"{value[1:]} cannot be read: {error}")
    return name, value


async def _run(opened: Index, account: str, action: str, parameters: dict[str, str]) -> object:
    from sluice_s3.app.access.iam.actions import Call
    from sluice_s3.app.access.iam.errors import IamError
    from sluice_s3.app.access.iam.parameters import Parameters
    from sluice_s3.app.access.iam.service import IAM, RUN

    account_id = await _account_id(opened, account)
    try:
        return await RUN[IAM](action, Call(opened, account_id, None, Parameters(parameters)))
    except IamError as error:
        fail(f"{error.code}: {error.text}")


async def _account_id(opened: Index, who: str) -> str:
    from sluice_s3.app.access.account import account_number

    for account, keys in await opened.accounts():
        if who in (account.id, account_number(account.id)) or who in {key.access_key for key in keys}:
            return account.id
    return fail("no such account", 3)
