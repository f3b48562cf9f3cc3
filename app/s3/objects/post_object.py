"""PostObject: an upload by HTML form, whose fields stand for a PUT's headers.

The fields are parsed, verified and turned into the headers of that PUT; the file is then stored like any body.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from sluice_s3.app.access.key_uses import S3
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization, session_tokens
from sluice_s3.app.s3.auth.authentication import verify
from sluice_s3.app.s3.auth.signatures.form import V4, parse_form
from sluice_s3.app.s3.auth.signatures.hoist import TOKEN
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import EntityTooSmall, InvalidArgument, NotImplemented
from sluice_s3.app.s3.objects import post_policy as policy
from sluice_s3.app.s3.objects.post_policy import PostPolicy
from sluice_s3.app.s3.objects.upload_form import UploadForm
from sluice_s3.app.s3.objects.write import PutObject, store_object, url_of
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.unsupported_headers import reject_unsupported_headers
from sluice_s3.app.s3.wire import metadata, target, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Headers, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

OF_CONNECTION = ("host", "user-agent", "referer", "origin", "access-control-request-method")
"""Headers taken from the browser. All others come from the form, since its policy covers only these."""
FORM_HEADERS = frozenset({"x-amz-user-agent", "x-amz-expected-bucket-owner", "x-amz-date", "x-amz-content-sha256"})
"""Headers of Amazon's that may accompany a form."""
RENAMED = {"acl": "x-amz-acl", "tagging": tags.HEADER}
OTHER_OPERATIONS = ("x-amz-copy-source", "x-amz-rename-source", "x-amz-write-offset-bytes")
STATUSES = {"200": 200, "201": 201}
"""Values of `success_action_status`; any other means 204."""


class _File(RequestBody):
    """The file of a form, with the least size of its policy."""

    smallest = 0

    def verify(self) -> None:
        """Check the body. Raises EntityTooSmall, and the errors of any body."""
        super().verify()
        if (self.size or 0) < self.smallest:
            raise EntityTooSmall(ProposedSize=self.size, MinSizeAllowed=self.smallest)


@operation("POST", "bucket", name="PostObject", action="s3:PutObject", signed_by_form=True)
async def post_object(services: Services, request: S3Request) -> Response:
    """Handle PostObject (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html)."""
    if request.signature is not None:
        raise InvalidArgument(
            "Only one auth mechanism allowed; a form is signed by its fields.", ArgumentName="Authorization"
        )
    for name in request.amazon:
        if name not in FORM_HEADERS:
            raise NotImplemented(Header=name)
    form = UploadForm(request.headers.get("content-type", ""), request.receive)
    request.is_document = True
    await form.read_fields()
    request.is_document = False
    _take_key(request, form.fields)
    allowed = await _authenticate_form(services, request, form.fields)
    _become_put_request(request, form)
    reject_unsupported_headers(request)
    authorization.authorize_form(request, "s3:PutObject")
    largest = services.settings.max_put
    if allowed is not None and allowed.largest is not None:
        largest = min(largest, allowed.largest)
    body = _File(request, etag=services.etag_kind(request, metadata.storage_class(request)), largest=largest)
    body.smallest = 0 if allowed is None else allowed.smallest
    written = await acls.ownership_of_new_object(services, request)
    await encryption.load_keyring(services, request)
    put = PutObject(services, request, written, body)
    committed = await store_object(services, request, put)
    return _answer(request, form.fields, put.etag, put.answer(committed).headers)


async def _authenticate_form(services: Services, request: S3Request, fields: dict[str, str]) -> PostPolicy | None:
    """Authenticate the form, and check it against its policy; None when it is unsigned.

    Raises InvalidAccessKeyId, SignatureDoesNotMatch, InvalidPolicyDocument, AccessDenied.
    """
    signature = parse_form(fields, region=services.regions.required, sigv2=services.settings.sigv2)
    if signature is None:
        return None
    services.key_uses.note(verify(request, signature, await services.cache.key(signature.access_key)), S3)
    found = policy.parse_post_policy(fields["policy"])
    found.check({**fields, "bucket": request.bucket or ""}, time.time())
    return found


def _take_key(request: S3Request, fields: dict[str, str]) -> None:
    """Set the key that the form names. Raises InvalidArgument, KeyTooLongError, InvalidURI."""
    key = fields.get("key")
    if key is None:
        raise InvalidArgument(
            "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.",
            ArgumentName="key",
            ArgumentValue="",
        )
    if not key:
        raise InvalidArgument("User key must have a length greater than 0.", ArgumentName="key", ArgumentValue="")
    target.validate_key(key)
    request.key = key


def _become_put_request(request: S3Request, form: UploadForm) -> None:
    """Turn the request into the form's PUT: fields become headers, the file the body.

    Raises InvalidArgument for names and values that no header can have, NotImplemented for fields of other operations.
    """
    headers = {name: request.headers[name] for name in OF_CONNECTION if name in request.headers}
    for field, value in form.fields.items():
        name = RENAMED.get(field, field)
        if (
            name in V4
            or name == session_tokens.HEADER
            or (name[:6] != "x-amz-" and name not in metadata.SYSTEM_METADATA and name != "content-md5")
        ):
            continue
        if name.startswith(OTHER_OPERATIONS):
            raise NotImplemented(Header=name)
        if name == tags.HEADER:
            value = tags.to_header(tags.parse_xml(value.encode("utf-8"), tags.MAX_OBJECT))
        if TOKEN.fullmatch(name) is None or any(character < " " or character == "\x7f" for character in value):
            raise InvalidArgument(ArgumentName=name)
        # header values are the bytes on the wire decoded as latin-1
        headers[name] = value.encode("utf-8").decode("latin-1")
    headers["transfer-encoding"] = "chunked"  # the file's size is known only at its end
    request.headers = headers
    request.amazon = tuple(name for name in headers if name.startswith("x-amz-"))
    request.repeated = frozenset()
    request.content_length = None
    request.replace_body(form.receive_file)


def _answer(request: S3Request, fields: dict[str, str], etag: str, described: Headers) -> Response:
    """Return the response for `success_action_redirect` or `success_action_status`."""
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


def _redirect(request: S3Request, url: str, etag: str) -> str:
    """Return the URL to redirect to; an invalid one is empty and ignored."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    object_query = (
        f"bucket={quote(request.bucket or '', safe='')}&key={quote(request.key or '', safe='')}&etag=%22{etag}%22"
    )
    query = f"{parts.query}&{object_query}" if parts.query else object_query
    return quote(parts._replace(query=query).geturl(), safe=":/?#[]@!$&'()*+,;=%-._~")
