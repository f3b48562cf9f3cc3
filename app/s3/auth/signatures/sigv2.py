"""Signature version 2, in the Authorization header and in the query.

Source: "Signing and Authenticating REST Requests (AWS Signature Version 2)", Amazon S3 User Guide. The signature covers
only a closed list of query parameters, so a request with any other that is not known to be harmless is refused.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from email.utils import mktime_tz, parsedate_tz
from urllib.parse import unquote

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures.hoist import hoist, to_header_value
from sluice_s3.app.s3.auth.signatures.request_signature import STREAMING, UNSIGNED_PAYLOAD, RequestSignature
from sluice_s3.app.s3.auth.signatures.sigv4 import check_payload, too_skewed
from sluice_s3.app.s3.wire.dates import format_extended, parse_basic
from sluice_s3.app.s3.wire.request import S3Request

SUB_RESOURCES = frozenset({
    "accelerate", "acl", "analytics", "cors", "delete", "inventory", "lifecycle", "location", "logging", "metrics",
    "notification", "object-lock", "partNumber", "policy", "replication", "requestPayment", "restore", "select",
    "select-type", "tagging", "torrent", "uploadId", "uploads", "versionId", "versioning", "versions", "website",
    "response-cache-control", "response-content-disposition", "response-content-encoding",
    "response-content-language", "response-content-type", "response-expires"
})  # fmt: skip
"""The signed parameters: those of the guide, and those that the SDKs have added since."""

HARMLESS = frozenset({
    "prefix", "marker", "delimiter", "max-keys", "encoding-type", "list-type", "continuation-token",
    "start-after", "fetch-owner", "key-marker", "version-id-marker", "upload-id-marker", "max-uploads",
    "part-number-marker", "max-parts", "max-buckets", "bucket-region", "x-id"
})  # fmt: skip
"""Parameters that select no operation and no object; the signature does not cover them."""

_SIGNATURE = frozenset({"AWSAccessKeyId", "Signature", "Expires"})
_ACCESS_KEY = re.compile(r"[!-~]{1,128}")
_EPOCH = re.compile(r"[0-9]{1,15}")


class V2Signature(RequestSignature):
    """A request signed with version 2."""

    __slots__ = ("_signature", "_strings_to_sign")

    def __init__(self, request: S3Request, access_key: str, signature: str, date: str, via: str) -> None:
        if _ACCESS_KEY.fullmatch(access_key) is None:
            raise errors.InvalidAccessKeyId
        self.access_key = access_key
        self.version = "v2"
        self.via = via
        payload = request.headers.get("x-amz-content-sha256") or UNSIGNED_PAYLOAD
        check_payload(payload)
        if payload in STREAMING:
            raise errors.InvalidRequest("aws-chunked transfer is not supported with signature version 2.")
        self.payload = payload.lower() if len(payload) == 64 else payload
        self._signature = signature
        path = request.raw_path.decode("latin-1")
        if request.virtual_host:
            path = f"/{request.bucket}{path}"
        self._strings_to_sign = _strings_to_sign(request, date, path)

    def verify(self, secret: str) -> None:
        """Check the signature. Raises SignatureDoesNotMatch."""
        signature = self._signature.encode("utf-8", "replace")
        for text in self._strings_to_sign:
            digest = hmac.digest(secret.encode("utf-8"), text.encode("latin-1", "replace"), "sha1")
            if hmac.compare_digest(b64encode(digest), signature):
                return
        raise errors.SignatureDoesNotMatch(AWSAccessKeyId=self.access_key)


def parse_v2_header(request: S3Request, credentials: str, *, now: float, clock_skew: float) -> V2Signature:
    """Return the signature of `Authorization: AWS ACCESS_KEY:SIGNATURE`. Raises S3's error for an invalid one."""
    access_key, colon, signature = credentials.strip(" ").rpartition(":")
    if not colon or not access_key or " " in credentials.strip(" "):
        raise errors.InvalidArgument(
            "AWS authorization header is invalid. Expected AwsAccessKeyId:signature", ArgumentName="Authorization"
        )
    _check_parameters(request)
    headers = request.headers
    text = headers.get("x-amz-date", headers.get("date", ""))
    seconds = _parse_date(text)
    if seconds is None:
        raise errors.AccessDenied("AWS authentication requires a valid Date or x-amz-date header")
    if abs(now - seconds) > clock_skew:
        raise too_skewed(text, now, clock_skew)
    return V2Signature(request, access_key, signature, "" if "x-amz-date" in headers else headers["date"], "header")


def parse_v2_query(request: S3Request, *, now: float) -> V2Signature:
    """Return the signature of a presigned URL of version 2. Raises S3's error for an invalid one."""
    query = request.query
    if not all(name in query for name in _SIGNATURE):
        raise errors.AccessDenied(
            "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters"
        )
    _check_parameters(request)
    expires = query["Expires"]
    if _EPOCH.fullmatch(expires) is None:
        raise errors.AccessDenied(f"Invalid date (should be seconds since epoch): {expires[:64]}")
    if now >= int(expires):
        raise errors.AccessDenied(
            "Request has expired", Expires=_extended(int(expires)), ServerTime=format_extended(now)
        )
    hoist(request)
    for name in ("content-md5", "content-type"):
        if name in query:
            request.headers.setdefault(name, to_header_value(name, query[name]))
    return V2Signature(request, query["AWSAccessKeyId"], query["Signature"], expires, "query")


def _parse_date(text: str) -> float | None:
    basic = parse_basic(text)
    if basic is not None:
        return basic
    fields = parsedate_tz(text)
    if fields is None:
        return None
    try:
        seconds = mktime_tz(fields)
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 else None


def _extended(seconds: int) -> str:
    try:
        return format_extended(seconds)
    except (ValueError, OverflowError, OSError):
        return str(seconds)


def _parameters(request: S3Request) -> list[tuple[str, str | None]]:
    found = []
    for part in request.raw_query.decode("latin-1").replace("+", " ").split("&"):
        if part:
            name, equals, value = part.partition("=")
            # as latin-1, so that the signed text encodes to the same bytes
            found.append((unquote(name, "latin-1"), unquote(value, "latin-1") if equals else None))
    return found


def _check_parameters(request: S3Request) -> None:
    via_query = "Signature" in request.query
    seen: set[str] = set()
    for name, _ in _parameters(request):
        if name in seen:
            raise errors.AccessDenied(f"The query parameter {name} is given twice.")
        seen.add(name)
        if name in SUB_RESOURCES or name in HARMLESS:
            continue
        if via_query and (name in _SIGNATURE or name[:6] == "x-amz-" or name in ("content-type", "content-md5")):
            continue
        raise errors.AccessDenied(f"Signature version 2 does not cover the query parameter {name}.")


def _strings_to_sign(request: S3Request, date: str, path: str) -> list[str]:
    """Return the texts that clients sign for this request, the guide's own first; all of them name the same request."""
    headers = request.headers
    lines = [request.method, headers.get("content-md5", ""), headers.get("content-type", ""), date]
    for name in sorted(name for name in headers if name[:6] == "x-amz-"):
        value = headers[name]
        if name in request.repeated:
            names = name.encode("latin-1")
            value = ",".join(v.decode("latin-1").strip() for n, v in request.header_list if n.lower() == names)
        lines.append(f"{name}:{value.strip()}")
    paths = [path]
    if not request.virtual_host and path.rfind("/") == 0 and len(path) > 1:
        # boto3 sends /bucket and signs /bucket/
        paths.append(path + "/")
    parameters = sorted((pair for pair in _parameters(request) if pair[0] in SUB_RESOURCES), key=lambda pair: pair[0])
    queries = [parameters]
    if any(value == "" for _, value in parameters):
        # minio-go sends ?uploads= and signs ?uploads
        queries.append([(name, value or None) for name, value in parameters])
    return ["\n".join([*lines, each + _format_query(query)]) for each in paths for query in queries]


def _format_query(parameters: list[tuple[str, str | None]]) -> str:
    if not parameters:
        return ""
    return "?" + "&".join(name if value is None else f"{name}={value}" for name, value in parameters)
