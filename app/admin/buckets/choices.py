"""What a new bucket can have, and where buckets can be moved."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from sluice_s3.app.admin.bodies import StrictRoute
from sluice_s3.app.admin.buckets.models import Choices, StoreChoice
from sluice_s3.app.admin.sessions.guard import Caller, require
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.regions import Regions

router = APIRouter(route_class=StrictRoute)


@router.get("/bucket-choices")
async def get_choices(request: Request, caller: Annotated[Caller, Depends(require())]) -> Choices:
    """Return what a new bucket can have, and to which stores the caller can move buckets (`sluice:MoveBucket`)."""
    settings: Settings = request.app.state.settings
    moves = caller.may("sluice:MoveBucket")
    regions = Regions(settings.region)
    stores = [
        StoreChoice(name=name, default=name == settings.first_store, plain_files=store.layout == "tree")
        for name, store in settings.named_stores.items()
    ]
    encryption = settings.default_encryption
    return Choices(
        region=regions.default,
        any_region=regions.required is None,
        stores=stores,
        object_ownership=settings.default_object_ownership,
        public_access_block=settings.default_public_access_block,
        encryption="" if encryption == "none" else encryption,
        targets=[store for store in stores if not store.plain_files] if moves else [],
    )
