"""Formats a line of a server access log.

"Amazon S3 server access log format", Amazon S3 User Guide.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple
from urllib.parse import quote

from sluice_s3.app.access.authorize import rests_on_acl
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3 import routing
from sluice_s3.app.s3.auth.condition_context import ConditionContext
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

_NAMES_OPERATIONS = """
GetObject GET.OBJECT HeadObject HEAD.OBJECT PutObject PUT.OBJECT DeleteObject DELETE.OBJECT CopyObject COPY.OBJECT
PostObject POST.OBJECT RestoreObject POST.RESTORE RenameObject PUT.OBJECT_RENAME
GetObjectAttributes GET.OBJECT_ATTRIBUTES DeleteObjects POST.MULTI_OBJECT_DELETE
GetObjectTagging GET.OBJECT_TAGGING PutObjectTagging PUT.OBJECT_TAGGING DeleteObjectTagging DELETE.OBJECT_TAGGING
GetObjectAcl GET.ACL PutObjectAcl PUT.ACL GetBucketAcl GET.ACL PutBucketAcl PUT.ACL
GetObjectRetention GET.OBJECT_LOCK_RETENTION PutObjectRetention PUT.OBJECT_LOCK_RETENTION
GetObjectLegalHold GET.OBJECT_LOCK_LEGALHOLD PutObjectLegalHold PUT.OBJECT_LOCK_LEGALHOLD
GetObjectLockConfiguration GET.OBJECT_LOCK_CONFIGURATION PutObjectLockConfiguration PUT.OBJECT_LOCK_CONFIGURATION
CreateMultipartUpload POST.UPLOADS UploadPart PUT.PART UploadPartCopy COPY.PART CompleteMultipartUpload POST.UPLOAD
AbortMultipartUpload DELETE.UPLOAD ListParts GET.UPLOAD ListMultipartUploads GET.UPLOADS
ListObjects GET.BUCKET ListObjectsV2 GET.BUCKET ListObjectVersions GET.BUCKETVERSIONS HeadBucket HEAD.BUCKET
CreateBucket PUT.BUCKET DeleteBucket DELETE.BUCKET GetBucketLocation GET.LOCATION
GetBucketLogging GET.LOGGING_STATUS PutBucketLogging PUT.LOGGING_STATUS
GetBucketPolicy GET.BUCKETPOLICY PutBucketPolicy PUT.BUCKETPOLICY DeleteBucketPolicy DELETE.BUCKETPOLICY
GetBucketPolicyStatus GET.POLICY_STATUS GetBucketVersioning GET.VERSIONING PutBucketVersioning PUT.VERSIONING
GetBucketRequestPayment GET.REQUEST_PAYMENT PutBucketRequestPayment PUT.REQUEST_PAYMENT
GetBucketNotificationConfiguration GET.NOTIFICATION PutBucketNotificationConfiguration PUT.NOTIFICATION
GetBucketLifecycleConfiguration GET.LIFECYCLE PutBucketLifecycleConfiguration PUT.LIFECYCLE
DeleteBucketLifecycle DELETE.LIFECYCLE
GetPublicAccessBlock GET.PUBLIC_ACCESS_BLOCK PutPublicAccessBlock PUT.PUBLIC_ACCESS_BLOCK
DeletePublicAccessBlock DELETE.PUBLIC_ACCESS_BLOCK
GetBucketOwnershipControls GET.OWNERSHIP_CONTROLS PutBucketOwnershipControls PUT.OWNERSHIP_CONTROLS
DeleteBucketOwnershipControls DELETE.OWNERSHIP_CONTROLS
"""
_PAIRS = _NAMES_OPERATIONS.split()
OPERATIONS = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
"""Names of operations in the log. Other names result from method and sub-resource in the same form."""
SUBRESOURCES = ("cors", "encryption", "inventory", "tagging", "website", "metrics", "analytics", "replication")
SIGNATURES = {"v2": "SigV2", "v4": "SigV4"}
AUTHENTICATED = {"header": "AuthHeader", "query": "QueryString"}
NO_VALUE = "-"
VERSION_ID = b"\r\nx-amz-version-id: "
"""With the preceding line end, which no metadata value holds."""
NO_WORD = re.compile(r'[^!-~]|["\[\]]')
"""Characters that end a field or a line, or begin a field of another kind."""
SECRET = re.compile("(?i)(server-side-encryption-customer-key=)[^&]*")
"""An encryption key in a signed URL. Readers of the log must not get access to the object."""
NO_TEXT = re.compile(r'[^ -~]|"')
"""The same for a field in quotation marks."""


class SecondaryRecord(NamedTuple):
    """A further effect of a request, beside its own bucket and key.

    `status` is empty for that of its response.
    """

    bucket: Bucket
    operation: str
    key: str
    version_id: str
    status: str = ""
    code: str = ""


def secondary_line(request: S3Request, record: SecondaryRecord, response: Response | None, seconds: float) -> str:
    """Return the line about it, with its line end."""
    status = record.status or (NO_VALUE if response is None else str(response.status))
    times = (str(int(seconds * 1000)), NO_VALUE)
    details = (record.code, 0, None, times, record.version_id)
    return format_text(request, record.bucket, record.operation, record.key, NO_VALUE, status, *details)


def query_of(request: S3Request) -> dict[str, str]:
    """Return the query of a request. Empty if the request was refused before it was parsed."""
    return getattr(request, "query", None) or {}


def operation_of(request: S3Request) -> str:
    """Return the log's name of a request's operation."""
    if request.method == "OPTIONS":
        return "REST.OPTIONS.PREFLIGHT"
    if request.website:
        return f"WEBSITE.{request.method}.OBJECT"
    operation_name = OPERATIONS.get(request.operation)
    if operation_name is None:
        found = next((name for name in SUBRESOURCES if name in query_of(request)), "")
        operation_name = f"{request.method}.{found.upper() or ('BUCKET' if request.key is None else 'OBJECT')}"
    return f"REST.{operation_name}"


def format_line(
    request: S3Request,
    bucket: Bucket,
    response: Response | None,
    code: str,
    sent: int,
    seconds: float,
    response_seconds: float,
) -> str:
    """Return the line of an answered request, with its line end.

    `seconds` is the total time, `response_seconds` the time to the response.
    """
    status = 0 if response is None else response.status
    path = request.raw_path.decode("latin-1")
    query = SECRET.sub(r"\1", request.raw_query.decode("latin-1"))
    uri = f"{request.method} {path}{'?' + query if query else ''} HTTP/1.1"
    return format_text(
        request,
        bucket,
        operation_of(request),
        request.key,
        _text(uri),
        str(status) if status else NO_VALUE,
        code,
        sent,
        _object_size(request, response),
        (str(int(seconds * 1000)), str(int(response_seconds * 1000))),
        _version_id(request, response),
        acl=status < 400 and _needed_acl(request, bucket),
    )


def format_text(
    request: S3Request,
    bucket: Bucket,
    operation: str,
    key: str | None,
    uri: str,
    status: str,
    code: str,
    sent: int,
    size: int | None,
    times: tuple[str, str],
    version_id: str,
    *,
    acl: bool = False,
) -> str:
    """Return a line for an effect of a request on a bucket or a key."""
    signature = request.signature
    headers = request.headers
    began = time.time() - int(times[0]) / 1000 if times[0] != NO_VALUE else time.time()
    fields = (
        _word(bucket.owner_id),
        _word(bucket.name),
        time.strftime("[%d/%b/%Y:%H:%M:%S +0000]", time.gmtime(began)),
        _word(request.client),
        _word(_requester(request)),
        request.request_id,
        _word(operation),
        _name(key or ""),
        uri,
        status,
        code or NO_VALUE,
        str(sent) if sent else NO_VALUE,
        NO_VALUE if size is None else str(size),
        *times,
        _text(headers.get("referer", "")),
        _text(headers.get("user-agent", "")),
        _name(version_id),
        request.request_id,
        NO_VALUE if signature is None else SIGNATURES.get(signature.version, NO_VALUE),
        NO_VALUE,  # the TLS cipher, unknown here
        NO_VALUE if signature is None else AUTHENTICATED.get(signature.via, NO_VALUE),
        _word(headers.get("host", "")),
        NO_VALUE,
        NO_VALUE,
        "Yes" if acl else NO_VALUE,
    )
    return " ".join(fields) + "\n"


def _requester(request: S3Request) -> str:
    """Return an account's canonical id, or the ARN of a user or session."""
    if request.principal is not None:
        arn: str = request.principal.caller.arn
        return arn
    return request.account_id or NO_VALUE


def _name(text: str) -> str:
    """Return a key or a version's id, percent-encoded."""
    return quote(text, safe="/-_.~*", errors="surrogatepass") or NO_VALUE


def _word(value: str) -> str:
    """Return a field that ends at a blank. Characters that would break it are percent-encoded."""
    return NO_WORD.sub(_encoded, value) or NO_VALUE


def _text(value: str) -> str:
    """Return a field in quotation marks, encoded as by `_word`."""
    return f'"{NO_TEXT.sub(_encoded, value) or NO_VALUE}"'


def _encoded(found: re.Match[str]) -> str:
    """Percent-encode the original bytes of head text decoded as latin-1; other characters as UTF-8."""
    character = found[0]
    data = character.encode("latin-1" if character < "\u0100" else "utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def _object_size(request: S3Request, response: Response | None) -> int | None:
    """Return the bytes of the whole object that was read or written."""
    if request.operation in ("PutObject", "PostObject", "UploadPart"):
        return request.body_size
    if response is None or response.status >= 300 or request.operation not in ("GetObject", "HeadObject"):
        return None
    for name, value in response.headers:
        if name == b"content-range":
            return int(value.rpartition(b"/")[2])
    return response.length


def _version_id(request: S3Request, response: Response | None) -> str:
    version_id = query_of(request).get("versionId", "")
    if version_id or response is None:
        return version_id
    _, found, rest = (b"\r\n" + response.head).partition(VERSION_ID)
    return rest.partition(b"\r\n")[0].decode("latin-1") if found else ""


def _needed_acl(request: S3Request, bucket: Bucket) -> bool:
    """Return whether only an ACL allowed a successful request."""
    if request.account_id == bucket.owner_id or request.method == "OPTIONS":
        return False
    # a form has no operation of its own in the routing table: its key is in the body
    action = "s3:PutObject" if request.operation == "PostObject" else routing.find_operation(request).action
    values = ConditionContext(request, bucket, tags={}).find_values
    return rests_on_acl(request.account_id, action, bucket, request.key, values, request.work)
