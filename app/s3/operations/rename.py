"""RenameObject: an object gets another key in its bucket at once, and no byte of it is written.

AWS has it in directory buckets, which keep no versions. Here it is for every bucket that never kept any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.errors import NoSuchKey
from app.index import restores
from app.index.rewrites import Rename, Wanted
from app.index.telling import telling
from app.s3 import conditions, rights, target
from app.s3.dates import parse_http
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument, InvalidObjectState, InvalidRequest, NotImplemented
from app.s3.events.causes import teller_of
from app.s3.request import S3Request
from app.s3.response import Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

SOURCE = "x-amz-rename-source"
TOKEN = "x-amz-client-token"  # noqa: S105 - a header's name
MAX_TOKEN = 64


@operation("PUT", "key", "renameObject", name="RenameObject", action="s3:PutObject")
async def rename_object(gateway: Gateway, request: S3Request) -> Response:
    """Its caller may as well have copied the object and deleted it: those are the rights that it takes.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RenameObject.html
    """
    bucket, key = request.bucket_row, request.key or ""
    source = _source(request)
    if gateway.tree_of(bucket) is not None or bucket.versioning:
        raise NotImplemented()
    if source == key:
        raise InvalidRequest("An object cannot be renamed to its own key.")
    there = _wanted(request, "")
    wanted = Rename(source, key, _wanted(request, SOURCE + "-"), there, _token(request))
    await rights.check_match(gateway, request, tells=any(one not in (None, "*") for one in there))
    rights.check(request, "s3:DeleteObject", bucket, source)
    rights.check(request, "s3:GetObject", bucket, source)
    version = None
    try:
        version = await gateway.find_for(request, bucket, source, None)
    except NoSuchKey:
        if request.undecided or not wanted.token:
            raise
        # it may be this request that renamed it
    if version is not None and restores.of(version.headers) is not None:
        raise InvalidObjectState(StorageClass=version.storage_class)  # it is looked for under its key
    with telling(teller_of(request, version)):
        await gateway.index.rename_object(bucket.id, wanted)
    return Response(200)


def _source(request: S3Request) -> str:
    """The key that the header names, alone or behind the bucket. Raises InvalidArgument."""
    value = request.headers.get(SOURCE, "").encode("latin-1")
    source = target.decode(value).removeprefix(f"/{request.bucket}/")
    if not source:
        raise InvalidArgument("RenameObject must name its source.", ArgumentName=SOURCE)
    target.check_key(source)
    return source


def _wanted(request: S3Request, prefix: str) -> Wanted:
    """The conditions whose headers begin so. Raises NotImplemented for several ETags, InvalidArgument for no date."""
    found: dict[str, str | None] = {}
    for name in ("if-match", "if-none-match"):
        value = request.headers.get(prefix + name)
        if value is not None and "," in value:
            raise NotImplemented(Header=prefix + name)
        found[name] = None if value is None else conditions.bare_etag(value)
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
