"""IAM and STS on the same endpoint: `POST /` with a form that names an action.

The form is believed as any request is (`app.s3.signing.service`), the action run by `app.access.iam`, and the answer
written as these services write theirs.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from app.access.iam.errors import IamError
from app.access.iam.parameters import Parameters
from app.access.iam.service import IAM, NAMES, RUN, STS
from app.access.iam.table import Call, Document, Result
from app.access.principal import principal_of
from app.index.rows import AccessKey
from app.s3 import xml
from app.s3.body import Body
from app.s3.errors import S3Error
from app.s3.facts import Facts
from app.s3.request import S3Request
from app.s3.response import Response
from app.s3.signing.service import Incomplete, ServiceClaim, Skewed, parse_service
from app.s3.tokens import TokenState, token_state

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

FORM = "application/x-www-form-urlencoded"
MAX_FORM = 512 * 1024
"""Bytes: the longest policy of IAM, percent-encoded, fits."""
MAX_FIELDS = 500
NAMESPACES = {"iam": "https://iam.amazonaws.com/doc/2010-05-08/", STS: "https://sts.amazonaws.com/doc/2011-06-15/"}
GLOBAL = "us-east-1"
"""The region of IAM for policies, wherever it is asked from ("AWS global condition context keys", IAM User Guide)."""
EMPTY = frozenset({"UpdateRole"})
"""Operations whose result is nothing, and yet named in the answer."""
INVALID = "The security token included in the request is invalid."
TEXT_XML = ((b"content-type", b"text/xml"),)


class Refusal(S3Error):
    """An error in the form that these services give it."""

    def __init__(self, service: str, request_id: str, status: int, code: str, message: str) -> None:
        super().__init__(message, code=code)
        self.status = status
        kind = "Sender" if status < 500 else "Receiver"
        content = f"<Type>{kind}</Type>{xml.element('Code', code)}{xml.shown('Message', message)}"
        self.document = (
            f'<ErrorResponse xmlns="{NAMESPACES.get(service, NAMESPACES[STS])}"><Error>{content}</Error>'
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        ).encode()


def is_for(request: S3Request) -> bool:
    """Whether a request is for these services: no operation of S3 has a form for the service itself."""
    return (
        request.method == "POST"
        and request.bucket is None
        and request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM
    )


async def answer(gateway: Gateway, request: S3Request) -> Response:
    """The answer to a form. Raises Refusal."""
    service = STS
    try:
        claim = _claim(gateway, request)
        service = claim.service
        key = await _key(gateway, request, claim)
        body = await Body(request, checksum="", etag=False).collect(MAX_FORM)
        _believe(request, claim, key, body)
        given = _fields(body)
        action = given.get("Action", "")
        if action in NAMES[service]:
            request.operation = action
        principal = request.principal = None if key.holder is None else principal_of(key.holder)
        request.region = GLOBAL if service == IAM else gateway.region
        call = Call(gateway.index, key.account_id, principal, Parameters(given), Facts(request, None).values)
        result = await RUN[service](action, call)
    except IamError as error:
        raise Refusal(service, request.request_id, error.status, error.code, error.text) from None
    except Refusal:
        raise
    except S3Error as error:
        raise Refusal(service, request.request_id, error.status, error.code, error.text) from None
    return Response(200, list(TEXT_XML), _document(service, action, result, request.request_id))


def _claim(gateway: Gateway, request: S3Request) -> ServiceClaim:
    def refuse(status: int, code: str, message: str) -> Refusal:
        return Refusal(STS, request.request_id, status, code, message)

    try:
        claim = parse_service(request, now=time.time(), clock_skew=gateway.settings.clock_skew)
    except Incomplete as error:
        raise refuse(400, "IncompleteSignature", str(error)) from None
    except Skewed:
        raise refuse(403, "SignatureDoesNotMatch", "Signature expired or not yet current.") from None
    if claim is None:
        raise refuse(403, "MissingAuthenticationToken", "Request is missing Authentication Token")
    if claim.service not in NAMES:
        message = "Credential should be scoped to correct service: 'iam' or 'sts'."
        raise refuse(403, "SignatureDoesNotMatch", message)
    return claim


async def _key(gateway: Gateway, request: S3Request, claim: ServiceClaim) -> AccessKey:
    found = await gateway.access_key(claim.access_key)
    if found is None:
        raise Refusal(claim.service, request.request_id, 403, "InvalidClientTokenId", INVALID)
    return found


def _believe(request: S3Request, claim: ServiceClaim, key: AccessKey, body: bytes) -> None:
    def refuse(code: str, message: str) -> Refusal:
        return Refusal(claim.service, request.request_id, 403, code, message)

    if not claim.matches(request, body, key.secret):
        raise refuse(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method. Consult the service documentation for details.",
        )
    state = token_state(key, request.headers.get("x-amz-security-token"))
    if state is TokenState.EXPIRED:
        raise refuse("ExpiredToken", "The security token included in the request is expired")
    if key.disabled or state is not TokenState.GOOD:
        raise refuse("InvalidClientTokenId", INVALID)
    request.access_key, request.account_id = key.access_key, key.account_id
    request.display_name = key.display_name


def _fields(body: bytes) -> dict[str, str]:
    """Names and values of a form. Raises IamError for what is none."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
            strict_parsing=True,
        )
    except ValueError:
        raise _Malformed("The form cannot be read.") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Malformed("A parameter is given twice.")
    return found


class _Malformed(IamError):
    @property
    def code(self) -> str:
        """As AWS calls it."""
        return "MalformedInput"


def _document(service: str, action: str, result: Result, request_id: str) -> bytes:
    content = _elements(result)
    inner = f"<{action}Result>{content}</{action}Result>" if content or action in EMPTY else ""
    return (
        f'<{action}Response xmlns="{NAMESPACES[service]}">{inner}'
        f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{action}Response>"
    ).encode()


def _elements(result: Result) -> str:
    return "".join(f"<{name}>{_value(value)}</{name}>" for name, value in result.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return _elements(value)
    if isinstance(value, list):
        # a map is a list of entries
        member = "entry" if value and isinstance(value[0], dict) and value[0].keys() == {"key", "value"} else "member"
        return "".join(f"<{member}>{_value(one)}</{member}>" for one in value)
    if isinstance(value, bool):
        return str(value).lower()
    return quote(value, safe="-._~") if isinstance(value, Document) else xml.escape(str(value))
