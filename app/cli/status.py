"""`sluice status`: what runs on this index, and the space of its stores."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, load_settings
from sluice_s3.app.cli.opened_index import run_with_index, runs_here
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.store.store import Store

TIMEOUT_SECONDS = 2.0
"""Seconds that the server, or a store, has to answer."""


def status_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    as_json: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code is the answer.")] = False,
) -> None:
    """Show whether the gateway serves, where, and the space of its stores.

    Exit codes: 0 it serves, 1 there is no index or it cannot be used, 3 no server runs here, 4 it runs and is not
    ready.
    """
    settings = load_settings(data=data, config=config, index=index)
    found = run_with_index(settings, lambda opened: _status(opened, settings))
    if as_json:
        print(json.dumps(found))
    elif not quiet:
        _print(found)
    if found["state"] != "ready":
        raise typer.Exit(3 if found["state"] == "stopped" else 4)


async def _status(index: Index, settings: Settings) -> dict[str, Any]:
    from sluice_s3.app.index.cluster.transactions import LIVE
    from sluice_s3.app.store.stores import make_stores

    running = runs_here(settings)
    addresses = _addresses(settings) if running else {}
    used = await index.stores_in_use()
    stores = make_stores(index, settings, await index.identities()).all.values()
    return {
        "state": await asyncio.to_thread(_state, addresses) if running else "stopped",
        "listens": addresses,
        "index": "Postgres" if settings.index_url is not None else str(settings.index_path),
        "gateways": len([one for one in await index.writers() if one.state == LIVE]) if index.many_hosts else None,
        "accounts": len(await index.accounts()),
        "stores": [await _describe(settings, store, used.get(store.name, 0)) for store in stores],
    }


def _addresses(settings: Settings) -> dict[str, str]:
    from sluice_s3.app.server.processes.listen import read_addresses, url_host

    try:
        return read_addresses(settings.run_dir)
    except OSError:  # it has not bound its sockets yet, or its launcher is of a version that wrote none
        scheme = "http" if settings.tls_cert is None else "https"
        return {"s3": f"{scheme}://{url_host(settings.host)}:{settings.port}"} if settings.port else {}


def _state(addresses: dict[str, str]) -> str:
    """Return whether the server says that it is ready."""
    import ssl
    import urllib.request

    if "s3" not in addresses:
        return "starting"
    unverified = ssl._create_unverified_context()  # noqa: S323 - it is the server of this machine, and gets no secret
    try:
        url = f"{addresses['s3']}/-/health/ready"
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS, context=unverified):  # noqa: S310 - http or https
            return "ready"
    except OSError:
        return "not ready"


async def _describe(settings: Settings, store: Store, buckets: int) -> dict[str, Any]:
    from sluice_s3.storage_drivers.types import UNKNOWN_SIZE

    usage = await store.usage(TIMEOUT_SECONDS)
    known = usage is not None and usage.total < UNKNOWN_SIZE
    place = settings.named_stores[store.name]
    return {
        "name": store.name,
        "place": str(place.path) if place.url is None else place.url.partition("://")[0],  # it may have a password
        "buckets": buckets,
        "free_bytes": usage.free if usage is not None and known else None,
        "total_bytes": usage.total if usage is not None and known else None,
        "answers": usage is not None,
    }


def _print(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.filesize import decimal

    rows = [("gateway", found["state"]), *found["listens"].items(), ("index", found["index"])]
    if found["gateways"] is not None:
        rows.append(("gateways", str(found["gateways"])))
    rows.append(("accounts", str(found["accounts"])))
    for store in found["stores"]:
        space = "does not answer"
        if store["answers"]:
            known = store["total_bytes"] is not None
            space = f"{decimal(store['free_bytes'])} of {decimal(store['total_bytes'])} free" if known else "answers"
        rows.append(("store", f"{store['name']}  {store['place']}  {store['buckets']} buckets  {space}"))
    console = Console(highlight=False, soft_wrap=True)
    for name, value in rows:
        console.print(f"{name:<10} {value}", markup=False)
