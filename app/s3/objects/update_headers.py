"""Changes the headers, tags or ACL of a stored version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice_s3.app.errors import ConditionalRequestConflict
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store.objects import MAX_SOURCE_RETRIES

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


async def update_version_headers(
    services: Services, request: S3Request, change: Callable[[Version], str], *, bypass: bool = False
) -> Version:
    """Replace a version's headers by the result of `change`; repeat when another change came first.

    Raises as `find_version`, ConditionalRequestConflict when that happens too often, and ObjectLocked when a retention
    does not allow an earlier end, also with `bypass`.
    """
    for _ in range(MAX_SOURCE_RETRIES):
        version = await find_version(services, request)
        stored_headers = change(version)
        if stored_headers == version.headers:
            return version
        try:
            address = (request.bucket_row.id, version.key)
            async with emit_events(event_builder_for(request, version)):
                seq = await services.index.set_headers(*address, version.seq, stored_headers, bypass)
        except ConditionalRequestConflict:
            continue
        return version._replace(seq=seq, headers=stored_headers)
    raise ConditionalRequestConflict()
