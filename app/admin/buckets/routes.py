"""The routes of buckets."""

from __future__ import annotations

from fastapi import APIRouter

from sluice_s3.app.admin.buckets import choices, listing, moves, policies, quotas, targets

router = APIRouter(tags=["buckets"])
for part in (listing, quotas, moves, choices, targets, policies):
    router.include_router(part.router)
