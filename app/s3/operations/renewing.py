"""Giving a version that is there other headers, tags or another ACL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.errors import ConditionalRequestConflict
from app.index.rows import Version
from app.index.telling import telling
from app.s3.events.causes import teller_of
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.store.objects import COPY_ATTEMPTS

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


async def renew(
    gateway: Gateway, request: S3Request, change: Callable[[Version], str], *, bypass: bool = False
) -> Version:
    """Give the version that a request names what `change` makes of it; done again when another change came first.

    Raises what `find` raises, ConditionalRequestConflict when that happens too often, and ObjectLocked for an earlier
    end of a retention that does not allow it, also with `bypass`.
    """
    for _ in range(COPY_ATTEMPTS):
        version = await find(gateway, request)
        kept = change(version)
        if kept == version.headers:
            return version
        try:
            place = (request.bucket_row.id, version.key)
            with telling(teller_of(request, version)):
                seq = await gateway.index.set_headers(*place, version.seq, kept, bypass)
        except ConditionalRequestConflict:
            continue
        return version._replace(seq=seq, headers=kept)
    raise ConditionalRequestConflict()
