"""All routes about people."""

from __future__ import annotations

from fastapi import APIRouter

from sluice_s3.app.admin.people import iam, policy_checks, rights, users

router = APIRouter()
for part in (iam, policy_checks, rights, users):
    router.include_router(part.router)
