"""Previews in the admin API."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, HTTPException, Query, Request

from sluice_s3.app.admin.archives.session_source import loopback_url
from sluice_s3.app.admin.previews.models import ParquetHeadOut
from sluice_s3.app.admin.previews.parquet import NotReadable, ParquetHeads
from sluice_s3.app.admin.sessions.guard import Caller, require

router = APIRouter(tags=["previews"])


@router.get("/previews/parquet")
async def get_parquet_head(
    request: Request,
    caller: Annotated[Caller, Depends(require())],
    bucket: Annotated[str, Query(min_length=3, max_length=63, pattern=r"^[a-z0-9.-]+$")],
    key: Annotated[str, Query(min_length=1, max_length=1024)],
    version_id: Annotated[str, Query(max_length=1024)] = "",
) -> ParquetHeadOut:
    """Return columns and first rows of a Parquet object that the caller may read.

    422 for an object that cannot be read; 501 without pyarrow.
    """
    heads = _heads(request)
    if not heads.is_installed:
        raise HTTPException(501, "Previews of Parquet need pyarrow: install sluice-s3[parquet] and start again.")
    if heads.is_busy:
        raise HTTPException(429, "Other previews are being made: try again.", {"retry-after": "2"})
    query = {"versionId": version_id} if version_id else {}
    url, certificate = loopback_url(request, caller, "GET", bucket, key, query)
    try:
        return await heads.read(url, certificate)
    except NotReadable as error:
        raise HTTPException(422, str(error)) from None


def _heads(request: Request) -> ParquetHeads:
    state = request.app.state
    if not hasattr(state, "parquet_heads"):
        state.parquet_heads = ParquetHeads()
    return cast(ParquetHeads, state.parquet_heads)
