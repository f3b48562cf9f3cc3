"""Backing stores in the admin API."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.admin.models import StoreOut
from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.availability.circuit_breaker import Condition
from sluice_s3.app.store.store import Store

router = APIRouter(tags=["stores"])

USAGE_TIMEOUT_SECONDS = 2.0
"""Seconds that a store may take to report its usage."""


async def _render_store(settings: Settings, store: Store, buckets: int) -> StoreOut:
    store_settings = settings.named_stores[store.name]
    usage = await store.usage(USAGE_TIMEOUT_SECONDS)
    # the driver of a store that was never in service here knows no identity
    identity = store.driver.identity or (await store.index.identities()).get(store.name)
    return StoreOut(
        name=store.name,
        default=store.name == settings.first_store,
        driver=store_settings.driver,
        layout=store_settings.layout,
        durability=store_settings.durability or "full",
        etag=store.etag_kind,
        state="down" if usage is None else _condition(store),
        buckets=buckets,
        store=identity and identity[0],
        generation=identity and identity[1],
        stored=None if store_settings.max_bytes is None else int(await store.index.note(store.stored_note) or 0),
        max_bytes=store_settings.max_bytes,
        min_free=store_settings.min_free,
        **({} if usage is None else asdict(usage)),
    )


def _condition(store: Store) -> Condition:
    return "up" if store.breaker is None else store.breaker.state.condition


@router.get("/stores", dependencies=[Depends(require("sluice:ListStores"))])
async def list_stores(request: Request) -> list[StoreOut]:
    """Return every configured store: identity, space, durability, whether it answers, its number of buckets."""
    store: Store = request.app.state.store
    settings: Settings = request.app.state.settings
    used = await store.index.stores_in_use()
    return list(
        await asyncio.gather(*(_render_store(settings, one, used.get(one.name, 0)) for one in store.all.values()))
    )


@router.get("/stores/{name}", dependencies=[Depends(require("sluice:ListStores"))])
async def get_store(request: Request, name: str) -> StoreOut:
    """Return one store."""
    store: Store = request.app.state.store
    if name not in store.all:
        raise HTTPException(404, "no such store")
    used = await store.index.stores_in_use()
    return await _render_store(request.app.state.settings, store.of(name), used.get(name, 0))
