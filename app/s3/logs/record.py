"""One line of a server access log.

"Amazon S3 server access log format", Amazon S3 User Guide.
"""

from __future__ import annotations

import re
import time
from typing import NamedTuple
from urllib.parse import quote

from app.access.authorize import rests_on_acl
from app.index.rows import Bucket
from app.s3 import dispatch
from app.s3.body import Body
from app.s3.facts import Facts
from app.s3.request import S3Request
from app.s3.response import Response

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
"""What a log calls operations. Others are named by their method and sub-resource, which comes to the same."""
SUBRESOURCES = ("cors", "encryption", "inventory", "tagging", "website", "metrics", "analytics", "replication")
SIGNATURES = {"v2": "SigV2", "v4": "SigV4"}
AUTHENTICATED = {"header": "AuthHeader", "query": "QueryString"}
NOTHING = "-"
VERSION_ID = b"x-amz-version-id: "
NO_WORD = re.compile(r'[^!-~]|["\[\]]')
"""What ends a field, a line, or begins a field of another kind."""
SECRET = re.compile("(?i)(server-side-encryption-customer-key=)[^&]*")
"""A key that encrypts an object, in a signed URL: who reads the log is not to read the object."""
NO_TEXT = re.compile(r'[^ -~]|"')
"""The same of a field in quotation marks."""


class Also(NamedTuple):
    """What a request did beside the bucket and key that it names; `status` is empty for that of its answer."""

    bucket: Bucket
    operation: str
    key: str
    version_id: str
    status: str = ""
    code: str = ""


def also(request: S3Request, done: Also, response: Response | None, seconds: float) -> str:
    """The line about it, with its end."""
    status = done.status or (NOTHING if response is None else str(response.status))
    times = (str(int(seconds * 1000)), NOTHING)
    details = (done.code, 0, None, times, done.version_id)
    return written(request, done.bucket, done.operation, done.key, NOTHING, status, *details)


def query_of(request: S3Request) -> dict[str, str]:
    """The query of a request, which may have been refused before it was read."""
    return getattr(request, "query", None) or {}


def operation_of(request: S3Request) -> str:
    """How a log names what a request asked for."""
    if request.method == "OPTIONS":
        return "REST.OPTIONS.PREFLIGHT"
    if request.website:
        return f"WEBSITE.{request.method}.OBJECT"
    known = OPERATIONS.get(request.operation)
    if known is None:
        found = next((name for name in SUBRESOURCES if name in query_of(request)), "")
        known = f"{request.method}.{found.upper() or ('BUCKET' if request.key is None else 'OBJECT')}"
    return f"REST.{known}"


def line(
    request: S3Request, bucket: Bucket, response: Response | None, code: str, sent: int, seconds: float, turned: float
) -> str:
    """The line about an answered request, with its end. `seconds` is the time in all, `turned` that to the answer."""
    status = 0 if response is None else response.status
    path = request.raw_path.decode("latin-1")
    query = SECRET.sub(r"\1", request.raw_query.decode("latin-1"))
    uri = f"{request.method} {path}{'?' + query if query else ''} HTTP/1.1"
    return written(
        request,
        bucket,
        operation_of(request),
        request.key,
        _text(uri),
        str(status) if status else NOTHING,
        code,
        sent,
        _object_size(request, response),
        (str(int(seconds * 1000)), str(int(turned * 1000))),
        _version_id(request, response),
        acl=status < 400 and _needed_acl(request, bucket),
    )


def written(
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
    """A line, of what a request did to a bucket or to one of many keys."""
    claim = request.signature
    headers = request.headers
    began = time.time() - int(times[0]) / 1000 if times[0] != NOTHING else time.time()
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
        code or NOTHING,
        str(sent) if sent else NOTHING,
        NOTHING if size is None else str(size),
        *times,
        _text(headers.get("referer", "")),
        _text(headers.get("user-agent", "")),
        _name(version_id),
        request.request_id,
        NOTHING if claim is None else SIGNATURES.get(claim.version, NOTHING),
        NOTHING,  # the cipher of TLS, which is not known here
        NOTHING if claim is None else AUTHENTICATED.get(claim.via, NOTHING),
        _word(headers.get("host", "")),
        NOTHING,
        NOTHING,
        "Yes" if acl else NOTHING,
    )
    return " ".join(fields) + "\n"


def _requester(request: S3Request) -> str:
    """An account by its canonical id, a user or a session by its ARN."""
    if request.principal is not None:
        arn: str = request.principal.caller.arn
        return arn
    return request.account_id or NOTHING


def _name(text: str) -> str:
    """A key or a version's id, decoded from what a client sent."""
    return quote(text, safe="/-_.~*", errors="surrogatepass") or NOTHING


def _word(value: str) -> str:
    """A field that ends at a blank, whatever a client made of it: what it must not hold is percent-encoded."""
    return NO_WORD.sub(_encoded, value) or NOTHING


def _text(value: str) -> str:
    """A field in quotation marks, as `_word`."""
    return f'"{NO_TEXT.sub(_encoded, value) or NOTHING}"'


def _encoded(found: re.Match[str]) -> str:
    """Bytes of the head, which are decoded as latin-1, become what they were; others are UTF-8."""
    character = found[0]
    data = character.encode("latin-1" if character < "\u0100" else "utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def _object_size(request: S3Request, response: Response | None) -> int | None:
    """Bytes of the whole object that was read or written."""
    if isinstance(request.body, Body) and request.operation in ("PutObject", "PostObject", "UploadPart"):
        return request.body.size
    if response is None or response.status >= 300 or request.operation not in ("GetObject", "HeadObject"):
        return None
    for name, value in response.headers:
        if name == b"content-range":
            return int(value.rpartition(b"/")[2])
    return response.length


def _version_id(request: S3Request, response: Response | None) -> str:
    asked = query_of(request).get("versionId", "")
    if asked or response is None:
        return asked
    _, found, rest = response.head.partition(VERSION_ID)
    return rest.partition(b"\r\n")[0].decode("latin-1") if found else ""


def _needed_acl(request: S3Request, bucket: Bucket) -> bool:
    """Whether the caller had the right by nothing but an ACL. Of a request that was answered as it asked."""
    if request.account_id == bucket.owner_id or request.method == "OPTIONS":
        return False
    # a form has become a request that is none of its own: its key stands in the body
    action = "s3:PutObject" if request.operation == "PostObject" else dispatch.find(request).action
    return rests_on_acl(request.account_id, action, bucket, request.key, Facts(request, bucket, tags={}).values)
