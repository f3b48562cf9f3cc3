"""The settings of the gateway, and what gave each."""

from __future__ import annotations

import os
from typing import Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from sluice_s3.app.admin.sessions.guard import require
from sluice_s3.app.settings.origins import Origin, show_settings

router = APIRouter(tags=["operations"])


class SettingOut(BaseModel):
    """A setting. Secrets are masked."""

    name: str
    value: Any = Field(description="As JSON; `**********` for a secret.")
    default: Any = Field(description="Null also where it depends on the machine.")
    origin: Origin = Field(description="`minio`: a variable of MinIO; `command`: a default of `sluice server`.")
    given_by: str = Field(description="The option, the variable or the file; empty for a default.")
    description: str


@router.get("/settings", dependencies=[Depends(require("sluice:GetSettings"))])
async def get_settings(request: Request) -> list[SettingOut]:
    """Return all settings of this gateway."""
    return [SettingOut(**one._asdict()) for one in show_settings(request.app.state.settings, os.environ)]
