"""RestoreObject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import ConditionalRequestConflict
from app.index import restores
from app.index.lock_clock import clock
from app.index.restores import Restore, note_name, note_value
from app.index.rows import Version
from app.index.telling import telling
from app.s3 import archives
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument, InvalidObjectState, NotImplemented
from app.s3.events.causes import teller_of
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.s3.response import Response
from app.s3.restore_errors import RestoreAlreadyInProgress
from app.store.lifecycle import Day
from app.store.objects import COPY_ATTEMPTS

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation("POST", "key", "restore", name="RestoreObject", action="s3:RestoreObject")
async def restore_object(gateway: Gateway, request: S3Request) -> Response:
    """Asks for an archived object, or for more days of one that is back; `app.jobs.restores` brings it.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html
    """
    if gateway.tree_of(request.bucket_row) is not None or not gateway.archives:
        raise NotImplemented()  # nothing is ever archived there
    asked = archives.parse(await document(request))
    bucket_id = request.bucket_row.id
    for _ in range(COPY_ATTEMPTS):
        version = await find(gateway, request)
        known = await _known(gateway, request, version, asked)
        now = clock.now_ms()
        until = 0
        if known is not None:
            until = Day(gateway.settings.lifecycle_day_seconds).after(now, asked.days)
        wanted = Restore(asked.days, asked.tier, now, until)
        place = (bucket_id, version.key, version.version_id, version.seq, version.headers)
        try:
            with telling(None if until else teller_of(request, version)):
                await gateway.index.ask_restore(*place, wanted)
        except ConditionalRequestConflict:
            continue
        return Response(200 if until else 202)
    raise ConditionalRequestConflict()


async def _known(gateway: Gateway, request: S3Request, version: Version, asked: archives.Asked) -> Restore | None:
    """How it stands with a version that is archived. Raises InvalidObjectState, RestoreAlreadyInProgress."""
    if not archives.is_archived(gateway, version):
        raise InvalidObjectState(archives.NO_ARCHIVE, StorageClass=version.storage_class)
    if asked.tier == "Expedited" and version.storage_class == "DEEP_ARCHIVE":
        raise InvalidArgument(
            "Retrieval option is not supported by this storage class", ArgumentName="Tier", ArgumentValue=asked.tier
        )
    known = restores.of(version.headers)
    if known is not None and not known.until:
        # the note is made again, lest the object got another key since
        await gateway.index.set_note(note_name(request.bucket_row.id, version.version_id, version.key), note_value(0))
        raise RestoreAlreadyInProgress()
    return known
