"""PostObject: an upload by an HTML form, whose fields say what a PUT says in its headers.

The fields are read, believed and made into the headers of that PUT; the file then goes the way of any body.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from app.s3 import acls, encryption, metadata, rights, tags, target, tokens, xml
from app.s3.body import Body
from app.s3.dispatch import operation
from app.s3.errors import EntityTooSmall, InvalidArgument, NotImplemented
from app.s3.forms import policy
from app.s3.forms.form import Form
from app.s3.forms.policy import PostPolicy
from app.s3.operations.object_write import Put, url_of, write
from app.s3.refused import refuse_unbuilt_headers
from app.s3.request import S3Request
from app.s3.response import XML, Headers, Response
from app.s3.signing.form import V4, parse_form
from app.s3.signing.hoist import TOKEN

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

OF_CONNECTION = ("host", "user-agent", "referer", "origin", "access-control-request-method")
"""Headers that a browser sends; all others are the form's, lest they say what its policy does not allow."""
TAKEN = frozenset({"x-amz-user-agent", "x-amz-expected-bucket-owner", "x-amz-date", "x-amz-content-sha256"})
"""Headers of Amazon's that may come beside a form."""
RENAMED = {"acl": "x-amz-acl", "tagging": tags.HEADER}
OTHER_OPERATIONS = ("x-amz-copy-source", "x-amz-rename-source", "x-amz-write-offset-bytes")
STATUSES = {"200": 200, "201": 201}
"""Of `success_action_status`; any other is 204."""


class _File(Body):
    """The file of a form, not smaller than its policy says."""

    smallest = 0

    def verify(self) -> None:
        """Raises EntityTooSmall, and what a body can be wrong in."""
        super().verify()
        if (self.size or 0) < self.smallest:
            raise EntityTooSmall(ProposedSize=self.size, MinSizeAllowed=self.smallest)


@operation("POST", "bucket", name="PostObject", action="s3:PutObject", form=True)
async def post_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html"""
    if request.signature is not None:
        raise InvalidArgument(
            "Only one auth mechanism allowed; a form is signed by its fields.", ArgumentName="Authorization"
        )
    for name in request.amazon:
        if name not in TAKEN:
            raise NotImplemented(Header=name)
    form = Form(request.headers.get("content-type", ""), request.receive)
    await form.read_fields()
    _take_key(request, form.fields)
    allowed = await _believe(gateway, request, form.fields)
    _make_put(request, form)
    refuse_unbuilt_headers(request)
    rights.admit_form(request, "s3:PutObject")
    largest = gateway.settings.max_put
    if allowed is not None and allowed.largest is not None:
        largest = min(largest, allowed.largest)
    body = _File(request, largest=largest)
    body.smallest = 0 if allowed is None else allowed.smallest
    written = await acls.written(gateway, request)
    await encryption.prepare(gateway, request)
    put = Put(gateway, request, written, body)
    committed = await write(gateway, request, put)
    return _answer(request, form.fields, put.etag, put.answer(committed).headers)


async def _believe(gateway: Gateway, request: S3Request, fields: dict[str, str]) -> PostPolicy | None:
    """Find out who signed the form, and check it against its policy; None when nobody did.

    Raises InvalidAccessKeyId, SignatureDoesNotMatch, InvalidPolicyDocument, AccessDenied.
    """
    claim = parse_form(fields, region=gateway.region, sigv2=gateway.settings.sigv2)
    if claim is None:
        return None
    await gateway.authenticate(request, claim)
    found = policy.parse(fields["policy"])
    found.check({**fields, "bucket": request.bucket or ""}, time.time())
    return found


def _take_key(request: S3Request, fields: dict[str, str]) -> None:
    """The key that the form names. Raises InvalidArgument, KeyTooLongError, InvalidURI."""
    key = fields.get("key")
    if key is None:
        raise InvalidArgument(
            "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.",
            ArgumentName="key",
            ArgumentValue="",
        )
    if not key:
        raise InvalidArgument("User key must have a length greater than 0.", ArgumentName="key", ArgumentValue="")
    target.check_key(key)
    request.key = key


def _make_put(request: S3Request, form: Form) -> None:
    """Make the request the PUT that the form asks for: its fields are the headers, its file the body.

    Raises InvalidArgument for names and values that no header can have, NotImplemented for fields of other operations.
    """
    headers = {name: request.headers[name] for name in OF_CONNECTION if name in request.headers}
    for field, value in form.fields.items():
        name = RENAMED.get(field, field)
        if (
            name in V4
            or name == tokens.HEADER
            or (name[:6] != "x-amz-" and name not in metadata.KEPT and name != "content-md5")
        ):
            continue
        if name.startswith(OTHER_OPERATIONS):
            raise NotImplemented(Header=name)
        if name == tags.HEADER:
            value = tags.to_header(tags.of_document(value.encode("utf-8"), tags.MAX_OBJECT))
        if TOKEN.fullmatch(name) is None or any(character < " " or character == "\x7f" for character in value):
            raise InvalidArgument(ArgumentName=name)
        # header values are the bytes on the wire read as latin-1
        headers[name] = value.encode("utf-8").decode("latin-1")
    headers["transfer-encoding"] = "chunked"  # how long the file is only its end tells
    request.headers = headers
    request.amazon = tuple(name for name in headers if name.startswith("x-amz-"))
    request.repeated = frozenset()
    request.content_length = None
    request.receive = form.receive_file


def _answer(request: S3Request, fields: dict[str, str], etag: str, described: Headers) -> Response:
    """What `success_action_redirect` or `success_action_status` asks for."""
    redirect = _redirect(request, fields.get("success_action_redirect") or fields.get("redirect") or "", etag)
    location = url_of(request)
    headers = [*described, (b"location", (redirect or location).encode())]
    if redirect:
        return Response(303, headers)
    status = STATUSES.get(fields.get("success_action_status", ""), 204)
    if status != 201:
        return Response(status, headers)
    content = (
        xml.element("Location", location)
        + xml.element("Bucket", request.bucket)
        + xml.element("Key", request.key)
        + f"<ETag>&quot;{etag}&quot;</ETag>"
    )
    return Response(201, [*headers, *XML], f"{xml.DECLARATION}<PostResponse>{content}</PostResponse>".encode())


def _redirect(request: S3Request, wanted: str, etag: str) -> str:
    """The URL that the browser is to go on to, empty when it cannot be one: then it counts as not given."""
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    told = f"bucket={quote(request.bucket or '', safe='')}&key={quote(request.key or '', safe='')}&etag=%22{etag}%22"
    query = f"{parts.query}&{told}" if parts.query else told
    return quote(parts._replace(query=query).geturl(), safe=":/?#[]@!$&'()*+,;=%-._~")
