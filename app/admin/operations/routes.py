"""All routes of the room Operations, and what they share while the application runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import APIRouter, FastAPI

from sluice_s3.app.admin.operations import audit_events, gateways, jobs, requests, settings
from sluice_s3.app.admin.operations.audit_trail import AuditChanges
from sluice_s3.app.admin.operations.gateways import HeartbeatWatch
from sluice_s3.app.admin.operations.request_watch import RequestWatch, Tail
from sluice_s3.app.admin.operations.store_check import CHECKS, StoreCheck

router = APIRouter()
for part in (audit_events, gateways, jobs, requests, settings):
    router.include_router(part.router)


def prepare(app: FastAPI, addresses: Callable[[], Mapping[str, str]], open_tail: Callable[[], Tail]) -> None:
    """Add to an application what the routes share, and the audit trail of all of its routes."""
    state = app.state
    state.addresses = addresses
    state.request_watch = RequestWatch(state.index, open_tail)
    state.heartbeat_watch = HeartbeatWatch()
    state.store_checks = {one.name: StoreCheck(one, state.index, state.settings) for one in CHECKS}
    app.add_middleware(AuditChanges, index=state.index)


async def close(app: FastAPI) -> None:
    """End what runs for the routes."""
    app.state.request_watch.close()
    for check in app.state.store_checks.values():
        await check.stop()
