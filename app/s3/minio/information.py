"""What `mc admin info` shows: the gateway, its stores, and what they hold."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from sluice_s3.app import __version__
from sluice_s3.app.access.authorize import resource_of
from sluice_s3.app.s3.minio.call import AdminCall, plain
from sluice_s3.app.s3.minio.routes import route
from sluice_s3.app.s3.notifications.xml import minio_arn
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.store.buckets import all_buckets
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.types import UNKNOWN_SIZE

COUNT_SECONDS = 5.0
"""Seconds that counting may take; what is not counted then says so."""
USAGE_SECONDS = 2.0
NOT_COUNTED = "not counted in time"
_started = time.time()


@route("GET", "info")
async def server_info(call: AdminCall) -> Response:
    """Return what is known of this gateway. Lists one server: the one that answers."""
    await call.require_operator("admin:ServerInfo", resource_of(None, None))
    services = call.services
    index, settings = services.index, services.settings
    drives = await asyncio.gather(*(_drive(store) for store in services.store.all.values()))
    server = {
        "state": "online",
        "endpoint": call.request.headers.get("host", ""),
        "scheme": call.request.scheme,
        "uptime": int(time.time() - _started),
        "version": __version__,
        "edition": "Sluice",
        "drives": drives,
    }
    return plain(
        {
            "mode": "online",
            "domain": list(settings.domains),
            "region": services.region,
            "sqsARN": [minio_arn(name, target.kind) for name, target in settings.notify_targets.items()],
            "deploymentID": (await index.identities()).get(services.store.name, ("",))[0],
            **await _counts(call),
            "backend": {"backendType": "FS"},
            "servers": [server],
        }
    )


async def _counts(call: AdminCall) -> dict[str, Any]:
    """Return numbers of buckets and objects, and bytes."""
    index = call.services.index
    try:
        async with asyncio.timeout(COUNT_SECONDS):
            used = [await index.bucket_usage(bucket.id) async for bucket in all_buckets(index)]
    except TimeoutError:
        unknown = {"count": 0, "error": NOT_COUNTED}
        return {"buckets": unknown, "objects": unknown, "usage": {"size": 0, "error": NOT_COUNTED}}
    return {
        "buckets": {"count": len(used)},
        "objects": {"count": sum(one.objects for one in used)},
        "usage": {"size": sum(one.bytes for one in used)},
    }


async def _drive(store: Store) -> dict[str, Any]:
    usage = await store.usage(USAGE_SECONDS)
    found: dict[str, Any] = {"endpoint": store.name, "state": "offline" if usage is None else "ok", "local": True}
    if usage is not None and usage.total != UNKNOWN_SIZE:
        found |= {"totalspace": usage.total, "availspace": usage.free, "usedspace": max(usage.total - usage.free, 0)}
        found |= {"free_inodes": usage.free_inodes}
    return found
