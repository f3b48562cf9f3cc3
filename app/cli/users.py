"""`sluice user …`: accounts and their keys.

Works beside a running server, which applies a change at once.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from pydantic import ValidationError

from sluice_s3.app.cli.common import (
    ConfigOption,
    DataOption,
    IndexOption,
    JsonOption,
    fail,
    fail_invalid,
    load_settings,
)
from sluice_s3.app.cli.opened_index import run_with_index
from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.index import Index

users = typer.Typer(name="user", help="Accounts and their keys.", no_args_is_help=True)

T = TypeVar("T")
SECRET_ENV = "SLUICE_USER_SECRET_KEY"  # noqa: S105 - a variable's name


@users.command()
def add(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    access_key: Annotated[str | None, typer.Option(help="Access key; generated when not given.")] = None,
    secret_key: Annotated[
        str | None,
        typer.Option(help=f"Secret key; `-` reads it from standard input; else env {SECRET_ENV}; else generated."),
    ] = None,
    account_id: Annotated[
        str | None,
        typer.Option("--id", help="Canonical id; an id that exists gets one more key. Generated when not given."),
    ] = None,
    display_name: Annotated[str, typer.Option(help="Display name.")] = "",
    email: Annotated[str, typer.Option(help="Email address, unique if given.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Add an account with a key, or a key to an account.

    Exit code 3: the id's email or the key is taken.
    """
    from sluice_s3.app.access.account_input import NewAccount
    from sluice_s3.app.index.iam.rows import Account

    is_secret_chosen = secret_key is not None or SECRET_ENV in os.environ
    secret = _secret(secret_key)
    access_key = access_key or "SL" + secrets.token_hex(9).upper()
    account_id = account_id or secrets.token_hex(32)
    try:
        NewAccount.model_validate(
            {
                "id": account_id,
                "display_name": display_name,
                "email": email,
                "access_key": access_key,
                "secret_key": secret,
            }
        )
    except ValidationError as error:
        fail_invalid(error)
    account = Account(account_id, display_name or access_key, email, False, int(time.time() * 1000))
    _run(
        load_settings(data=data, config=config, index=index),
        lambda opened: opened.add_account(account, access_key, secret),
    )
    new_account = {"id": account_id, "display_name": account.display_name, "email": email, "access_key": access_key}
    if not is_secret_chosen:
        new_account["secret_key"] = secret
    if as_json:
        print(json.dumps(new_account))
        return
    for name, value in new_account.items():
        print(f"{name.replace('_', ' ')}: {value}")


def _secret(option: str | None) -> str:
    if option == "-":
        return sys.stdin.readline().rstrip("\n")
    return option or os.environ.get(SECRET_ENV) or secrets.token_urlsafe(30)


@users.command("list")
def list_users(
    data: DataOption = None, config: ConfigOption = None, index: IndexOption = None, as_json: JsonOption = False
) -> None:
    """List accounts and their access keys, without secrets."""
    found = _run(load_settings(data=data, config=config, index=index), lambda opened: opened.accounts())
    if as_json:
        print(
            json.dumps(
                [
                    {
                        "id": account.id,
                        "display_name": account.display_name,
                        "email": account.email,
                        "disabled": account.disabled,
                        "access_keys": [key.access_key for key in keys],
                    }
                    for account, keys in found
                ]
            )
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("id", "display name", "email", "state", "access keys")
    for account, keys in found:
        state = "disabled" if account.disabled else "active"
        table.add_row(account.id, account.display_name, account.email, state, "\n".join(key.access_key for key in keys))
    Console().print(table)


Who = Annotated[str, typer.Argument(help="Canonical id or access key of the account.")]


@users.command()
def remove(who: Who, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Remove an account that owns no bucket, with all its keys.

    Exit code 3: no such account; 4: it owns buckets.
    """

    async def call(opened: Index) -> None:
        account_id = await _account_id(opened, who)
        if await opened.buckets(account_id, "", "", 1):
            fail("the account owns buckets; disable it, or delete them first", 4)
        await opened.remove_account(account_id)

    _run(load_settings(data=data, config=config, index=index), call)


@users.command()
def disable(who: Who, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Refuse every request of an account from now on.

    Exit code 3: no such account.
    """
    _set_disabled(who, load_settings(data=data, config=config, index=index), True)


@users.command()
def enable(who: Who, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Undo `disable`.

    Exit code 3: no such account.
    """
    _set_disabled(who, load_settings(data=data, config=config, index=index), False)


def _set_disabled(who: str, settings: Settings, disabled: bool) -> None:
    async def call(opened: Index) -> None:
        await opened.set_disabled(await _account_id(opened, who), disabled)

    _run(settings, call)


async def _account_id(opened: Index, who: str) -> str:
    if await opened.account(who) is not None:
        return who
    key = await opened.access_key(who)
    if key is None:
        raise NoSuchAccount()
    return key.account_id


def _run(settings: Settings, call: Callable[[Index], Awaitable[T]]) -> T:
    try:
        return run_with_index(settings, call, (NoSuchAccount, AccountExists))
    except NoSuchAccount:
        fail("no such account", 3)
    except AccountExists as error:
        fail(f"taken: {error}", 3)
