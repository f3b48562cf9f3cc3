"""Signature version 4 in header and query, without the lookup of the secret."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NoReturn

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures.canonical import (
    canonical_request,
    path_of,
    query_by_name,
    query_fields,
    query_of,
    raw_path_of,
)
from sluice_s3.app.s3.auth.signatures.request_signature import (
    STREAMING,
    UNSIGNED_PAYLOAD,
    ChunkSigner,
    RequestSignature,
    sign,
)
from sluice_s3.app.s3.wire.dates import format_basic, format_extended, parse_basic, parse_http
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.target import PERCENT
from sluice_s3.app.store.regions import FIRST, is_accepted

ALGORITHM = "AWS4-HMAC-SHA256"
MAX_EXPIRES = 604_800
"""Seconds; "Authenticating Requests: Using Query Parameters", Amazon S3 API Reference."""

_QUERY_PARAMETERS = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Signature",
    "X-Amz-Date",
    "X-Amz-SignedHeaders",
    "X-Amz-Expires",
)

# the form of every SDK; anything else takes the slow parser, which finds the fault to report
_BEFORE_SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 +Credential=([!-+\-.0-~]++)/([0-9]{8})/([^/, ]++)/s3/aws4_request, *SignedHeaders=([^, ]++), *"
)
MAX_CACHED = 1024
"""Characters of an Authorization header before its signature that are cached for the next request."""
_ACCESS_KEY = re.compile(r"[!-+\--~]{1,128}")
_DAY = re.compile(r"[0-9]{8}")
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_EXPIRES = re.compile(r"(-?)([0-9]{1,18})")


class V4Signature(RequestSignature):
    """A request signed with version 4."""

    __slots__ = ("_alternative", "_day", "_region", "_signature", "_string_to_sign", "_timestamp")

    version = "v4"

    def __init__(
        self, request: S3Request, scope: Sequence[str], timestamp: str, signed_headers: str, signature: str,
        query: str, payload: str, via: str,
    ) -> None:  # fmt: skip
        self.access_key, self._day, self._region = scope[0], scope[1], scope[2]
        self.via = via
        self.payload = payload.lower() if len(payload) == 64 else payload
        self._timestamp = timestamp
        self._signature = signature
        raw_path = request.raw_path
        canonical = canonical_request(request, path_of(raw_path), query, signed_headers, payload)
        # hashed here and not in verify(), so that there is no reference cycle with the request
        self._string_to_sign = self._string(canonical)
        self._alternative: str | None = None
        if PERCENT in raw_path and (sent := raw_path_of(raw_path)) is not None:
            self._alternative = self._string(canonical_request(request, sent, query, signed_headers, payload))

    def _string(self, canonical: bytes) -> str:
        digest = sha256(canonical).hexdigest()
        return f"{ALGORITHM}\n{self._timestamp}\n{self._day}/{self._region}/s3/aws4_request\n{digest}"

    def verify(self, secret: str) -> None:
        """Check the signature. Raises SignatureDoesNotMatch."""
        signature = self._signature
        if signature.isascii():  # required by compare_digest for str
            if hmac.compare_digest(sign(secret, self._day, self._region, self._string_to_sign), signature):
                return
            text = self._alternative
            if text is not None and hmac.compare_digest(sign(secret, self._day, self._region, text), signature):
                return
        raise errors.SignatureDoesNotMatch(AWSAccessKeyId=self.access_key, StringToSign=self._string_to_sign)

    def matches_by_name(self, request: S3Request, secret: str) -> bool:
        """See `RequestSignature.matches_by_name`."""
        if self.via != "header" or not request.raw_query or not self._signature.isascii():
            return False
        _, signed_headers, _ = _components(request.headers["authorization"])
        query, payload = query_by_name(request.raw_query), request.headers["x-amz-content-sha256"]
        text = self._string(canonical_request(request, path_of(request.raw_path), query, signed_headers, payload))
        return hmac.compare_digest(sign(secret, self._day, self._region, text), self._signature)

    def chunk_signer(self, secret: str) -> ChunkSigner:
        """Return the chain of chunk signatures that begins with this request's."""
        return ChunkSigner(secret, self._day, self._region, self._timestamp, self._signature)


def parse_header(request: S3Request, value: str, *, now: float, region: str | None, clock_skew: float) -> V4Signature:
    """Return the signature of an Authorization header. Raises S3's error for one that cannot be valid."""
    before, _, signature = value.rpartition("Signature=")
    usual = _cached_credential(before, region) if len(before) <= MAX_CACHED and signature.isalnum() else None
    scope: Sequence[str]
    if usual is not None:
        scope, signed_headers, signed = usual
    else:
        scope, signed_headers, signature = _components(value)
        signed = frozenset(signed_headers.split(";"))
        _check_scope(scope, region, _bad_header)
    headers = request.headers
    timestamp = headers.get("x-amz-date")
    seconds = None
    if timestamp is not None:
        seconds = parse_basic(timestamp)
    elif (date := headers.get("date")) is not None:
        seconds = parse_basic(date)
        if seconds is None:
            seconds = parse_http(date)
        if seconds is not None:
            timestamp = format_basic(seconds)
    if seconds is None or timestamp is None:
        raise errors.AccessDenied("AWS authentication requires a valid Date or x-amz-date header")
    if timestamp[:8] != scope[1]:
        _bad_header("Invalid credential date. Date is not the same as X-Amz-Date.")
    _check_signed_headers(request, signed)
    if abs(now - seconds) > clock_skew:
        raise too_skewed(timestamp, now, clock_skew)
    payload = headers.get("x-amz-content-sha256")
    if payload is None:
        raise errors.InvalidRequest("Missing required header for this request: x-amz-content-sha256")
    check_payload(payload)
    query = query_of(query_fields(request.raw_query)) if request.raw_query else ""
    return V4Signature(request, scope, timestamp, signed_headers, signature, query, payload, "header")


@lru_cache(maxsize=1024)
def _cached_credential(before: str, region: str | None) -> tuple[tuple[str, ...], str, frozenset[str]] | None:
    """Parse an Authorization header up to its signature, which a client repeats all day.

    Returns key, day and region, the signed headers, and the same as a set; None unless it is valid.
    """
    match = _BEFORE_SIGNATURE.fullmatch(before)
    if match is None or not is_accepted(match[3], region):
        return None
    return match.groups()[:3], match[4], frozenset(match[4].split(";"))


def parse_query(request: S3Request, *, now: float, region: str | None, clock_skew: float) -> V4Signature:
    """Return the signature of a presigned URL. Raises S3's error for one that cannot be valid."""
    query = request.query
    algorithm = query.get("X-Amz-Algorithm")
    if algorithm is not None and algorithm.startswith("AWS4-ECDSA-P256-SHA256"):
        raise errors.NotImplemented("AWS4-ECDSA-P256-SHA256 is not implemented.")
    if algorithm is not None and algorithm != ALGORITHM:
        raise errors.AuthorizationQueryParametersError('X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"')
    for name in _QUERY_PARAMETERS:
        if not query.get(name) and (name != "X-Amz-Signature" or name not in query):
            raise errors.AuthorizationQueryParametersError(
                "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature,"
                " X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters."
            )
    fields = query_fields(request.raw_query)
    _check_duplicates(fields)
    scope = credential_scope(query["X-Amz-Credential"], region)
    timestamp = query["X-Amz-Date"]
    seconds = parse_basic(timestamp)
    if seconds is None:
        raise errors.AuthorizationQueryParametersError(
            "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\""
        )
    if timestamp[:8] != scope[1]:
        raise errors.AuthorizationQueryParametersError(
            f'Invalid credential date "{scope[1]}". This date is not the same as X-Amz-Date: "{timestamp[:8]}".'
        )
    expires = _expires(query["X-Amz-Expires"])
    signed_headers = query["X-Amz-SignedHeaders"]
    _check_signed_headers(request, frozenset(signed_headers.split(";")))
    if seconds > now + clock_skew:
        raise errors.AccessDenied("Request is not valid yet", ServerTime=format_extended(now))
    if now >= seconds + expires:
        expired = errors.AccessDenied(
            "Request has expired", Expires=format_extended(seconds + expires), ServerTime=format_extended(now)
        )
        expired.extra["X-Amz-Expires"] = str(expires)
        raise expired
    payload = request.headers.get("x-amz-content-sha256") or query.get("X-Amz-Content-Sha256") or UNSIGNED_PAYLOAD
    check_payload(payload)
    if payload in STREAMING:
        raise errors.InvalidRequest("aws-chunked transfer is not supported with query-string authentication.")
    signed_query = query_of([field for field in fields if not field.startswith("X-Amz-Signature\0")])
    signature = query["X-Amz-Signature"]
    return V4Signature(request, scope, timestamp, signed_headers, signature, signed_query, payload, "query")


def check_payload(value: str) -> None:
    """Refuse a value of x-amz-content-sha256 that this server cannot check."""
    if value == UNSIGNED_PAYLOAD or _DIGEST.fullmatch(value) or value in STREAMING:
        return
    if value.startswith("STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"):
        raise errors.NotImplemented("AWS4-ECDSA-P256-SHA256 is not implemented.")
    raise errors.InvalidArgument(
        "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER,"
        " STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER,"
        " STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD, STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER"
        " or a valid sha256 value.",
        ArgumentName="x-amz-content-sha256",
        ArgumentValue=value,
    )


def too_skewed(request_time: str, now: float, clock_skew: float) -> errors.RequestTimeTooSkewed:
    """Return the error for a request whose time is off by more than `clock_skew` seconds."""
    return errors.RequestTimeTooSkewed(
        RequestTime=request_time, ServerTime=format_extended(now), MaxAllowedSkewMilliseconds=int(clock_skew * 1000)
    )


def credential_scope(credential: str, region: str | None) -> tuple[str, ...]:
    """Return the parts of an X-Amz-Credential: access key, day, region and the constant ones.

    Raises AuthorizationQueryParametersError for another region or service.
    """
    scope = _scope(credential, _bad_credential)
    _check_scope(scope, region, _bad_credential)
    return scope


_EXPECTED = '"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request"'


def _bad_header(fault: str) -> NoReturn:
    raise errors.AuthorizationHeaderMalformed(f"The authorization header is malformed; {fault}")


def _bad_credential(fault: str) -> NoReturn:
    raise errors.AuthorizationQueryParametersError(f"Error parsing the X-Amz-Credential parameter; {fault}")


def _components(value: str) -> tuple[tuple[str, ...], str, str]:
    found: dict[str, str] = {}
    for component in value[len(ALGORITHM) :].split(","):
        name, equals, text = component.strip(" ").partition("=")
        if not equals or name not in ("Credential", "SignedHeaders", "Signature") or name in found:
            _bad_header(f'the authorization component "{component.strip()}" is malformed.')
        found[name] = text
    for name in ("Credential", "SignedHeaders", "Signature"):
        if name not in found:
            _bad_header(f"missing {name}.")
    scope = _scope(found["Credential"], _bad_header)
    if " " in found["SignedHeaders"] or " " in found["Signature"]:
        _bad_header("blanks are not allowed in its components.")
    return scope, found["SignedHeaders"], found["Signature"]


def _scope(credential: str, refuse: Callable[[str], NoReturn]) -> tuple[str, ...]:
    parts = tuple(credential.rsplit("/", 4))
    if len(parts) != 5 or _ACCESS_KEY.fullmatch(parts[0]) is None:
        refuse(f"the Credential is mal-formed; expecting {_EXPECTED}.")
    return parts


def _check_scope(scope: tuple[str, ...], region: str | None, refuse: Callable[[str], NoReturn]) -> None:
    _, day, scope_region, service, terminator = scope
    if _DAY.fullmatch(day) is None:
        refuse(f'incorrect date format "{day}". This date in the credential must be in the format "yyyyMMdd".')
    if service != "s3":
        refuse(f'incorrect service "{service}". This endpoint belongs to "s3".')
    if terminator != "aws4_request":
        refuse(f'incorrect terminal "{terminator}". This endpoint uses "aws4_request".')
    if not is_accepted(scope_region, region):
        expected = region or FIRST
        # clients take the region to use from this element
        try:
            refuse(f"the region '{scope_region}' is wrong; expecting '{expected}'")
        except errors.S3Error as error:
            error.extra["Region"] = expected
            raise


def _check_signed_headers(request: S3Request, signed: frozenset[str]) -> None:
    if "host" not in signed or not signed.issuperset(request.amazon):
        missing = [name for name in ("host", *request.amazon) if name not in signed]
        raise errors.AccessDenied(
            "There were headers present in the request which were not signed", HeadersNotSigned=", ".join(missing)
        )


def _check_duplicates(fields: list[str]) -> None:
    names = [field.partition("\0")[0].lower() for field in fields]
    names = [name for name in names if name[:6] == "x-amz-"]
    if len(set(names)) < len(names):
        raise errors.AuthorizationQueryParametersError("A parameter X-Amz-... must be given only once.")


def _expires(value: str) -> int:
    match = _EXPIRES.fullmatch(value)
    if match is None:
        raise errors.AuthorizationQueryParametersError("X-Amz-Expires should be a number")
    seconds = int(match[2])
    if match[1] and seconds:
        raise errors.AuthorizationQueryParametersError("X-Amz-Expires must be non-negative")
    if seconds > MAX_EXPIRES:
        raise errors.AuthorizationQueryParametersError(
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than"
            " 604800 seconds"
        )
    return seconds
