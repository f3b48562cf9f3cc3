"""Giving a version that is there other headers, tags or another ACL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.errors import ConditionalRequestConflict
from app.index.rows import Version
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.store.objects import COPY_ATTEMPTS

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


async def renew(gateway: Gateway, request: S3Request, change: Callable[[Version], str]) -> Version:
    """Give the version that a request names what `change` makes of it; done again when another change came first.

    Raises what `find` raises, and ConditionalRequestConflict when that happens too often.
    """
    for _ in range(COPY_ATTEMPTS):
        version = await find(gateway, request)
        kept = change(version)
        if kept == version.headers:
            return version
        try:
            await gateway.index.set_headers(request.bucket_row.id, version.key, version.seq, kept)
        except ConditionalRequestConflict:
            continue
        return version
    raise ConditionalRequestConflict()
