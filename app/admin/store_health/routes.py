"""Routes of the health of stores."""

from __future__ import annotations

from fastapi import APIRouter, Depends, HTTPException, Request

from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.admin.store_health.health import StoresHealth
from sluice_s3.app.admin.store_health.models import StoreHealthOut

router = APIRouter(tags=["stores"], dependencies=[Depends(require("sluice:ListStores"))])


@router.get("/store-health")
async def list_store_health(request: Request) -> list[StoreHealthOut]:
    """Return everything about every store: mount, space, latency, packs, journals, circuit breaker, scrub.

    While somebody asks, each store is probed every few seconds: a small read and a small sync.
    """
    health: StoresHealth = request.app.state.monitoring.health
    health.watch.look()
    return await health.all()


@router.get("/store-health/{name}")
async def get_store_health(request: Request, name: str) -> StoreHealthOut:
    """Return the same about one store."""
    health: StoresHealth = request.app.state.monitoring.health
    if name not in health:
        raise HTTPException(404, "There is no store of this name. `GET /api/v1/stores` lists them.")
    health.watch.look()
    return await health.read(name)
