"""IAM and STS on the same endpoint: `POST /` with an action's form.

`app.s3.auth.signatures.service` verifies the form, `app.access.iam` runs the action, and the response has the form of
these services.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from sluice_s3.app.access.iam.actions import Call, Document, Result, is_read
from sluice_s3.app.access.iam.errors import (
    ExpiredToken,
    IamError,
    IncompleteSignature,
    InternalFailure,
    InvalidClientTokenId,
    MalformedInput,
    MissingAuthenticationToken,
    ServiceUnavailable,
    SignatureDoesNotMatch,
    Throttling,
)
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, NAMES, RUN, STS
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.iam.rows import AccessKey
from sluice_s3.app.s3.audit import record_change, trail_of
from sluice_s3.app.s3.auth.condition_context import ConditionContext
from sluice_s3.app.s3.auth.session_tokens import TokenState, check_session_token
from sluice_s3.app.s3.auth.signatures.service import ClockSkew, Incomplete, ServiceSignature, parse_service
from sluice_s3.app.s3.errors import InternalError, S3Error, SlowDown
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

logger = logging.getLogger("sluice.s3")

FORM = "application/x-www-form-urlencoded"
MAX_FORM = 512 * 1024
"""Bytes: the longest policy of IAM fits, percent-encoded."""
MAX_FIELDS = 500
NAMESPACES = {"iam": "https://iam.amazonaws.com/doc/2010-05-08/", STS: "https://sts.amazonaws.com/doc/2011-06-15/"}
GLOBAL = "us-east-1"
"""The region of IAM in policies ("AWS global condition context keys", IAM User Guide)."""
RESULTS_WITHOUT_CONTENT = frozenset({"UpdateRole"})
"""Operations with an empty result that the response still names."""
INVALID = "The security token included in the request is invalid."
TEXT_XML = ((b"content-type", b"text/xml"),)


class QueryError(S3Error):
    """An error in the form of these services."""

    def __init__(self, service: str, request_id: str, error: IamError | S3Error) -> None:
        super().__init__(error.text, code=error.code)
        self.status = error.status
        kind = "Sender" if error.status < 500 else "Receiver"
        content = f"<Type>{kind}</Type>{xml.element('Code', error.code)}{xml.element_lossy('Message', error.text)}"
        self.document = (
            f'<ErrorResponse xmlns="{NAMESPACES.get(service, NAMESPACES[STS])}"><Error>{content}</Error>'
            f"<RequestId>{request_id}</RequestId></ErrorResponse>"
        ).encode()


def is_iam_request(request: S3Request) -> bool:
    """Return whether a POST is for these services. S3 has no form at the service level."""
    return request.bucket is None and request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM


async def handle(services: Services, request: S3Request) -> Response:
    """Answer a form. Raises QueryError."""
    service = STS
    try:
        signature = _parse_signature(services, request)
        service = signature.service
        key = await _find_key(services, signature)
        body = await RequestBody(request, checksum="", etag="").collect(MAX_FORM)
        _verify_signature(request, signature, key, body)
        services.key_uses.note(key, service)
        if services.rates is not None:
            services.rates.check(request)
        fields = _fields(body)
        action = fields.get("Action", "")
        if action in NAMES[service]:
            request.operation = action
        principal = request.principal = None if key.holder is None else build_principal(key.holder)
        request.region = GLOBAL if service == IAM else services.region
        call = Call(
            services.index, key.account_id, principal, Parameters(fields), ConditionContext(request, None).find_values
        )
        run = partial(RUN[service], action, call)
        if action in NAMES[service] and not is_read(action):
            trail = trail_of(request, service, f"{service}:{action}", fields.get("RoleArn", ""))
            result = await record_change(services.audit, trail, run, lambda error: _error_of(error, request).code)
        else:
            result = await run()
        document = _document(service, action, result, request.request_id)
    except Exception as error:
        raise QueryError(service, request.request_id, _error_of(error, request)) from None
    return Response(200, list(TEXT_XML), document)


def _error_of(error: Exception, request: S3Request) -> IamError | S3Error:
    """Return these services' error for an exception. Faults of the server have codes that SDKs retry."""
    if isinstance(error, IamError):
        return error
    if not isinstance(error, S3Error | DomainError):
        logger.error("request %s failed", request.request_id, exc_info=error)
    s3_error = to_s3_error(error)
    if isinstance(s3_error, SlowDown):
        return Throttling("Rate exceeded")
    if s3_error.status in (503, 507):
        return ServiceUnavailable("The request has failed due to a temporary failure of the server.")
    if isinstance(s3_error, InternalError):
        return InternalFailure("The request processing has failed because of an unknown error, exception or failure.")
    return s3_error


def _parse_signature(services: Services, request: S3Request) -> ServiceSignature:
    try:
        signature = parse_service(request, now=time.time(), clock_skew=services.settings.clock_skew)
    except Incomplete as error:
        raise IncompleteSignature(str(error)) from None
    except ClockSkew:
        raise SignatureDoesNotMatch("Signature expired or not yet current.") from None
    if signature is None:
        raise MissingAuthenticationToken("Request is missing Authentication Token")
    if signature.service not in NAMES:
        raise SignatureDoesNotMatch("Credential should be scoped to correct service: 'iam' or 'sts'.")
    return signature


async def _find_key(services: Services, signature: ServiceSignature) -> AccessKey:
    found = await services.cache.key(signature.access_key)
    if found is None:
        raise InvalidClientTokenId(INVALID)
    return found


def _verify_signature(request: S3Request, signature: ServiceSignature, key: AccessKey, body: bytes) -> None:
    if not signature.matches(request, body, key.secret):
        raise SignatureDoesNotMatch(
            "The request signature we calculated does not match the signature you provided. Check your AWS Secret"
            " Access Key and signing method. Consult the service documentation for details."
        )
    state = check_session_token(key, request.headers.get("x-amz-security-token"))
    if state is TokenState.EXPIRED:
        raise ExpiredToken("The security token included in the request is expired")
    if key.disabled or state is not TokenState.GOOD:
        raise InvalidClientTokenId(INVALID)
    request.access_key, request.account_id = key.access_key, key.account_id
    request.display_name = key.display_name


def _fields(body: bytes) -> dict[str, str]:
    """Return names and values of a form. Raises IamError for a malformed one."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
            strict_parsing=True,
        )
    except ValueError:
        raise MalformedInput("The form cannot be read.") from None
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedInput("A parameter is given twice.")
    return found


def _document(service: str, action: str, result: Result, request_id: str) -> bytes:
    content = _elements(result)
    inner = f"<{action}Result>{content}</{action}Result>" if content or action in RESULTS_WITHOUT_CONTENT else ""
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
