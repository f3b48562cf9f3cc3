"""RestoreObject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.errors import ConditionalRequestConflict
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.index.restore.state import RestoreState, restore_meta_key, restore_meta_value
from sluice_s3.app.s3.errors import InvalidArgument, InvalidObjectState, NotImplemented, RestoreAlreadyInProgress
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.objects import MAX_SOURCE_RETRIES

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation("POST", "key", "restore", name="RestoreObject", action="s3:RestoreObject")
async def restore_object(services: Services, request: S3Request) -> Response:
    """Handle RestoreObject: request an archived object, or extend a restore.

    `app.jobs.relocation.restores` restores it. https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html
    """
    if services.tree_of(request.bucket_row) is not None or not services.archives:
        raise NotImplemented()  # nothing is ever archived there
    restore_request = archives.parse_restore_request(await read_document(request))
    bucket_id = request.bucket_row.id
    for _ in range(MAX_SOURCE_RETRIES):
        version = await find_version(services, request)
        state = await _find_restore_state(services, request, version, restore_request)
        now = clock.now_ms()
        until = 0
        if state is not None:
            until = LifecycleCalendar(services.settings.lifecycle_day_seconds).after(now, restore_request.days)
        new_state = RestoreState(restore_request.days, restore_request.tier, now, until)
        version_fields = (bucket_id, version.key, version.version_id, version.seq, version.headers)
        try:
            async with emit_events(None if until else event_builder_for(request, version)):
                await services.index.ask_restore(*version_fields, new_state)
        except ConditionalRequestConflict:
            continue
        return Response(200 if until else 202)
    raise ConditionalRequestConflict()


async def _find_restore_state(
    services: Services, request: S3Request, version: Version, restore_request: archives.RestoreRequest
) -> RestoreState | None:
    """Return the restore state of an archived version. Raises InvalidObjectState, RestoreAlreadyInProgress."""
    if not archives.is_archived(services, version):
        raise InvalidObjectState(archives.NO_ARCHIVE, StorageClass=version.storage_class)
    if restore_request.tier == "Expedited" and version.storage_class == "DEEP_ARCHIVE":
        raise InvalidArgument(
            "Retrieval option is not supported by this storage class",
            ArgumentName="Tier",
            ArgumentValue=restore_request.tier,
        )
    state = restore_state.restore_state(version.headers)
    if state is not None and not state.until:
        # the note is written again, in case the object's key has changed since
        await services.index.set_note(
            restore_meta_key(request.bucket_row.id, version.version_id, version.key), restore_meta_value(0)
        )
        raise RestoreAlreadyInProgress()
    return state
