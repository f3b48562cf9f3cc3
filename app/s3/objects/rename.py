"""RenameObject: changes the key of an object at once, without writing a byte of it.

AWS has it in directory buckets, which keep no versions. Here every bucket that has never kept any supports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.errors import NoSuchKey
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.objects.conditions import Wanted
from sluice_s3.app.index.objects.rows import Rename
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import InvalidArgument, InvalidObjectState, InvalidRequest, NotImplemented
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.objects.find import find_authorized
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import conditions, target
from sluice_s3.app.s3.wire.dates import parse_http
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

SOURCE = "x-amz-rename-source"
TOKEN = "x-amz-client-token"  # noqa: S105 - a header's name
MAX_TOKEN = 64


@operation("PUT", "key", "renameObject", name="RenameObject", action="s3:PutObject")
async def rename_object(services: Services, request: S3Request) -> Response:
    """Handle RenameObject, with the permissions of a copy followed by a delete.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RenameObject.html
    """
    bucket, key = request.bucket_row, request.key or ""
    source = _source(request)
    if services.tree_of(bucket) is not None or bucket.versioning:
        raise NotImplemented()
    if source == key:
        raise InvalidRequest("An object cannot be renamed to its own key.")
    there = _parse_conditions(request, "")
    preconditions = Rename(source, key, _parse_conditions(request, SOURCE + "-"), there, _token(request))
    if any(one not in (None, "*") for one in there):
        await authorization.authorize_precondition(services, request)
    authorization.require_action(request, "s3:DeleteObject", bucket, source)
    authorization.require_action(request, "s3:GetObject", bucket, source)
    version = None
    try:
        version = await find_authorized(services, request, bucket, source, None)
    except NoSuchKey:
        if request.authorization_pending or not preconditions.token:
            raise
        # this request may have renamed it before
    if version is not None and restore_state.restore_state(version.headers) is not None:
        raise InvalidObjectState(StorageClass=version.storage_class)  # its restore is recorded under this key
    async with emit_events(event_builder_for(request, version)):
        await services.index.rename_object(bucket.id, preconditions)
    return Response(200)


def _source(request: S3Request) -> str:
    """Return the key in the header, with or without its bucket. Raises InvalidArgument."""
    value = request.headers.get(SOURCE, "").encode("latin-1")
    source = target.decode(value).removeprefix(f"/{request.bucket}/")
    if not source:
        raise InvalidArgument("RenameObject must name its source.", ArgumentName=SOURCE)
    target.validate_key(source)
    return source


def _parse_conditions(request: S3Request, prefix: str) -> Wanted:
    """Return the conditions with this prefix. Raises NotImplemented for several ETags, InvalidArgument for no date."""
    found: dict[str, str | None] = {}
    for name in ("if-match", "if-none-match"):
        value = request.headers.get(prefix + name)
        if value is not None and "," in value:
            raise NotImplemented(Header=prefix + name)
        found[name] = None if value is None else conditions.unquote_etag(value)
    dates = (_date(request, prefix + name) for name in ("if-modified-since", "if-unmodified-since"))
    return Wanted(found["if-match"], found["if-none-match"], *dates)


def _date(request: S3Request, name: str) -> int | None:
    value = request.headers.get(name)
    seconds = None if value is None else parse_http(value)
    if value is not None and seconds is None:
        raise InvalidArgument(ArgumentName=name, ArgumentValue=value[:64])
    return seconds


def _token(request: S3Request) -> str:
    token = request.headers.get(TOKEN, "")
    if len(token) > MAX_TOKEN or any(not "!" <= character <= "~" for character in token):
        raise InvalidArgument(ArgumentName=TOKEN, ArgumentValue=token[: 2 * MAX_TOKEN])
    return token
