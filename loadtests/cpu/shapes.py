"""The requests of real clients: their fields in order and case, what they sign, and how they encode a body.

Recorded in November 2026 from each client of the named version, with its defaults and path-style addresses, by a proxy
that writes down what arrives. The names stand in the order of the wire. `~` marks a field that is not signed; `=` gives
a value; the other values are those of `Shape.values` and `COMMON`, or are computed from the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COMMON = {
    "accept-encoding": "identity",
    "amz-sdk-invocation-id": "7ff6df17-17f8-426d-8c4d-00531b18bee2",
    "amz-sdk-request": "attempt=1; max=3",
    "connection": "keep-alive",
    "content-encoding": "aws-chunked",
    "content-type": "application/octet-stream",
    "expect": "100-continue",
    "transfer-encoding": "chunked",
    "x-amz-checksum-mode": "ENABLED",
    "x-amz-sdk-checksum-algorithm": "CRC32",
}
"""Values of fields, by lower-case name, unless the shape has another."""
NEVER_SIGNED = frozenset({"authorization", "connection", "expect", "transfer-encoding", "user-agent"})
NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
PLAIN_DELETE = f'<Delete xmlns="{NAMESPACE}"><Object><Key>{{key}}</Key></Object></Delete>'
DECLARED_DELETE = f'<?xml version="1.0" encoding="UTF-8"?>{PLAIN_DELETE}'
UNSIGNED = "UNSIGNED-PAYLOAD"


@dataclass(frozen=True)
class Encoding:
    """How a body is sent. `payload` is `x-amz-content-sha256`; empty: the body's own digest."""

    payload: str = ""
    chunk: int = 0
    """Bytes of an aws-chunk; 0: the body as it is."""
    trailer: str = ""
    """The checksum behind the body: a field's name."""
    trailer_end: str = "\r\n"
    http_chunk: int = 0
    """Bytes of HTTP's own chunks around it; 0: a Content-Length."""
    separator: str = ", "
    """What stands between the parts of `Authorization`."""

    @property
    def signs_chunks(self) -> bool:
        """Whether each chunk, and the trailer, has a signature."""
        return self.payload.startswith("STREAMING-AWS4")


CRC32, CRC32C = "x-amz-checksum-crc32", "x-amz-checksum-crc32c"
WHOLE = 1 << 40
DIGEST, NO_DIGEST = Encoding(), Encoding(UNSIGNED)
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"


@dataclass(frozen=True)
class Call:
    """One request: method and target, the names of its fields, and its body's encoding."""

    target: str
    fields: str
    encoding: Encoding = DIGEST


@dataclass(frozen=True)
class Shape:
    """What one client sends, by operation: PUT, GET, HEAD, LIST, DELETE-OBJECTS and PART.

    `over_tls` has the calls that differ there. A client may lack an operation.
    """

    calls: Mapping[str, Call]
    over_tls: Mapping[str, Call] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    delete: str = PLAIN_DELETE
    """The body of DeleteObjects with one key."""
    waits: bool = True
    """Whether it sends the body of a request with `Expect` only after 100 Continue."""

    def call(self, operation: str, *, tls: bool) -> Call | None:
        """Return the request of an operation, or None if the client has none."""
        return (self.over_tls.get(operation) if tls else None) or self.calls.get(operation)


def _boto3() -> Shape:
    tail = "host X-Amz-Date x-amz-content-sha256 Authorization ~amz-sdk-invocation-id ~amz-sdk-request"
    checked = f"x-amz-checksum-crc32 x-amz-sdk-checksum-algorithm {tail} ~Content-Length"
    put = f"~Accept-Encoding User-Agent Expect {checked}"
    plain = f"~Accept-Encoding User-Agent {tail}"
    streamed = (
        "~Accept-Encoding User-Agent Expect Transfer-Encoding Content-Encoding X-Amz-Trailer"
        f" X-Amz-Decoded-Content-Length x-amz-sdk-checksum-algorithm {tail}"
    )
    part = "PUT /{bucket}/{key}?uploadId={upload}&partNumber={part}"
    trailer = Encoding(UNSIGNED_TRAILER, 1 << 20, CRC32, http_chunk=128 << 10)
    return Shape(
        {
            "PUT": Call("PUT /{bucket}/{key}", put),
            "GET": Call("GET /{bucket}/{key}", f"~Accept-Encoding x-amz-checksum-mode User-Agent {tail}"),
            "HEAD": Call("HEAD /{bucket}/{key}", plain),
            "LIST": Call("GET /{bucket}?list-type=2&encoding-type=url", plain),
            "DELETE-OBJECTS": Call("POST /{bucket}?delete", f"~Accept-Encoding User-Agent {checked}"),
            "PART": Call(part, put),
        },
        {"PUT": Call("PUT /{bucket}/{key}", streamed, trailer), "PART": Call(part, streamed, trailer)},
        {
            "user-agent": "Boto3/1.44.5 md/Botocore#1.44.5 md/awscrt#0.38.0 ua/2.1 os/linux#6.1.0 md/arch#x86_64"
            " lang/python#3.11.7 md/pyimpl#CPython m/Z,e,E,N,U,b cfg/retry-mode#standard Botocore/1.44.5",
        },
    )


def _aws_sdk_go() -> Shape:
    begin = "Host User-Agent"
    own = "Accept-Encoding Amz-Sdk-Invocation-Id Amz-Sdk-Request Authorization"
    end = "X-Amz-Content-Sha256 X-Amz-Date"
    checked = f"{begin} Content-Length {own} Content-Type{{}} X-Amz-Checksum-Crc32 {end}"
    streamed = (
        f"{begin} Content-Length {own} Content-Encoding Content-Type{{}} {end}"
        " X-Amz-Decoded-Content-Length X-Amz-Trailer"
    )
    put = "PUT /{bucket}/{key}?x-id=PutObject"
    part = "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}&x-id=UploadPart"
    trailer = Encoding(UNSIGNED_TRAILER, WHOLE, CRC32)
    return Shape(
        {
            "PUT": Call(put, checked.format("")),
            "GET": Call("GET /{bucket}/{key}?x-id=GetObject", f"{begin} {own} X-Amz-Checksum-Mode {end}"),
            "HEAD": Call("HEAD /{bucket}/{key}", f"{begin} {own} {end}"),
            "LIST": Call("GET /{bucket}?list-type=2", f"{begin} {own} {end}"),
            "DELETE-OBJECTS": Call("POST /{bucket}?delete=", checked.format("=application/xml")),
            "PART": Call(part, checked.format(" Expect")),
        },
        {"PUT": Call(put, streamed.format(""), trailer), "PART": Call(part, streamed.format(" Expect"), trailer)},
        {
            "user-agent": "aws-sdk-go-v2/1.47.8 ua/2.1 os/linux lang/go#1.26.8 md/GOOS#linux md/GOARCH#amd64"
            " api/s3#1.114.9 m/E,Z,e",
        },
    )


def _aws_sdk_java() -> Shape:
    begin = "Host amz-sdk-invocation-id amz-sdk-request Authorization"
    streamed = (
        f"{begin} Content-Encoding Content-Type Expect User-Agent x-amz-content-sha256 X-Amz-Date"
        " x-amz-decoded-content-length x-amz-sdk-checksum-algorithm x-amz-trailer Content-Length Connection"
    )
    plain = f"{begin} User-Agent x-amz-content-sha256 X-Amz-Date Connection"
    read = (
        f"{begin} User-Agent x-amz-checksum-crc32=AAAAAA== x-amz-content-sha256 X-Amz-Date x-amz-te=append-md5"
        " Connection"
    )
    delete = (
        f"{begin} Content-Type=application/xml User-Agent x-amz-checksum-crc32 x-amz-content-sha256 X-Amz-Date"
        " x-amz-sdk-checksum-algorithm Content-Length Connection"
    )
    put, part = "PUT /{bucket}/{key}", "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}"
    signed, unsigned = (Encoding(payload, 128 << 10, CRC32) for payload in (SIGNED_TRAILER, UNSIGNED_TRAILER))
    return Shape(
        {
            "PUT": Call(put, streamed, signed),
            "GET": Call("GET /{bucket}/{key}", read, NO_DIGEST),
            "HEAD": Call("HEAD /{bucket}/{key}", plain, NO_DIGEST),
            "LIST": Call("GET /{bucket}?list-type=2", plain, NO_DIGEST),
            "DELETE-OBJECTS": Call("POST /{bucket}?delete", delete),
            "PART": Call(part, streamed, signed),
        },
        {"PUT": Call(put, streamed, unsigned), "PART": Call(part, streamed, unsigned)},
        {
            "amz-sdk-request": "attempt=1; max=4",
            "connection": "Keep-Alive",
            "user-agent": "aws-sdk-java/2.40.0 md/io#sync md/http#Apache ua/2.1 api/S3#2.40.x os/Linux#6.1.0"
            " lang/java#17.0.15 md/OpenJDK_64-Bit_Server_VM#17.0.15+6-Debian-1deb12u1 md/vendor#Debian md/rb#b"
            " m/D,N,N,Z,b,U,e",
        },
        DECLARED_DELETE,
    )


def _aws_sdk_js() -> Shape:
    end = (
        "x-amz-user-agent user-agent host amz-sdk-invocation-id amz-sdk-request x-amz-date x-amz-content-sha256"
        " authorization Connection"
    )
    checked = f"content-type{{}} x-amz-sdk-checksum-algorithm x-amz-checksum-crc32 {end}"
    part = "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}&x-id=UploadPart"
    return Shape(
        {
            "PUT": Call("PUT /{bucket}/{key}?x-id=PutObject", checked.format(" content-length")),
            "GET": Call("GET /{bucket}/{key}?x-id=GetObject", f"x-amz-checksum-mode {end}"),
            "HEAD": Call("HEAD /{bucket}/{key}", end),
            "LIST": Call("GET /{bucket}/?list-type=2", end),
            "DELETE-OBJECTS": Call("POST /{bucket}/?delete=", checked.format("=application/xml content-length")),
            "PART": Call(part, f"{checked.format(' content-length Expect')}=close"),
        },
        values={
            "x-amz-user-agent": "aws-sdk-js/3.1172.0",
            "user-agent": "aws-sdk-js/3.1172.0 ua/2.1 os/linux#6.1.0 lang/js md/nodejs#20.20.2 api/s3#3.1172.0"
            " m/N,Z,b,U,E,e",
        },
        delete=DECLARED_DELETE,
    )


def _aws_crt() -> Shape:
    begin = "Host{} amz-sdk-invocation-id amz-sdk-request"
    plain = begin.format(" Content-Length")
    end = "User-Agent X-Amz-Date x-amz-content-sha256 Authorization"
    streamed = (
        f"{begin.format('')}{{}} Expect Content-Encoding x-amz-trailer x-amz-decoded-content-length Content-Length"
        " User-Agent X-Amz-Date Authorization x-amz-content-sha256"
    )
    read = f"{plain} Range x-amz-checksum-mode=enabled If-Match {end}"
    delete = f"{begin.format('')} Content-Type=application/xml x-amz-checksum-crc32 Content-Length {end}"
    part = "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}"
    trailer = Encoding(UNSIGNED_TRAILER, WHOLE, CRC32)
    return Shape(
        {
            "PUT": Call("PUT /{bucket}/{key}", streamed.format(" Content-Type"), trailer),
            "GET": Call("GET /{bucket}/{key}", read, NO_DIGEST),
            "HEAD": Call("HEAD /{bucket}/{key}", f"{plain} {end}", NO_DIGEST),
            "LIST": Call("GET /{bucket}?list-type=2", f"{plain} {end}", NO_DIGEST),
            "DELETE-OBJECTS": Call("POST /{bucket}?delete", delete, NO_DIGEST),
            "PART": Call(part, streamed.format(""), trailer),
        },
        values={
            "amz-sdk-request": "attempt=1; max=1",
            "user-agent": "aws-sdk-java/2.40.0 md/io#async md/http#s3crt ua/2.1 api/S3#2.40.x os/Linux#6.1.0"
            " lang/java#17.0.15 md/OpenJDK_64-Bit_Server_VM#17.0.15+6-Debian-1deb12u1 md/vendor#Debian md/rb#b"
            " m/E,N,N,Z,b,e CRTS3NativeClient/0.1.x platform/unknown",
        },
        delete=DECLARED_DELETE,
        waits=False,
    )


def _minio_go(*, trailing: bool) -> Shape:
    begin, end = "Host User-Agent", "X-Amz-Content-Sha256 X-Amz-Date"
    plain = f"{begin} Authorization {end}"
    sized = f"{begin} ~Content-Length Authorization"
    chunked = f"{sized} Content-Encoding{{}} {end} X-Amz-Decoded-Content-Length"
    put, part = "PUT /{bucket}/{key}", "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}"
    listed = "GET /{bucket}/?delimiter=&encoding-type=url&fetch-owner=true&list-type=2&prefix="
    if trailing:
        chunked += " X-Amz-Trailer"
        kind = " Content-Type X-Amz-Checksum-Algorithm=CRC32C"
        signed, unsigned = (
            Encoding(payload, 64 << 10, CRC32C, "\n\r\n", separator=separator)
            for payload, separator in ((SIGNED_TRAILER, ","), (UNSIGNED_TRAILER, ", "))
        )
        over_tls = {
            "PUT": Call(put, chunked.format(kind), unsigned),
            "PART": Call(part, chunked.format(""), unsigned),
        }
    else:
        kind = " Content-Type"
        signed = Encoding("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", 64 << 10, separator=",")
        over_tls = {
            "PUT": Call(put, f"{sized} Content-Type {end}", NO_DIGEST),
            "PART": Call(part, f"{sized} {end}", NO_DIGEST),
        }
    return Shape(
        {
            "PUT": Call(put, chunked.format(kind), signed),
            "GET": Call("GET /{bucket}/{key}", plain),
            "HEAD": Call("HEAD /{bucket}/{key}", plain),
            "LIST": Call(listed, plain),
            "DELETE-OBJECTS": Call("POST /{bucket}/?delete=", f"{sized} Content-Md5 {end}"),
            "PART": Call(part, chunked.format(""), signed),
        },
        over_tls,
        {"user-agent": "MinIO (linux; amd64) minio-go/v7.4.1"},
        "<Delete><Quiet>false</Quiet><Object><Key>{key}</Key></Object></Delete>",
    )


def _rclone() -> Shape:
    """Of version 1.76; it deletes one by one, and lists by version 1."""
    begin = "Host User-Agent{} Accept-Encoding{} Amz-Sdk-Invocation-Id Amz-Sdk-Request Authorization"
    end = "X-Amz-Content-Sha256 X-Amz-Date"
    sized = f"{begin.format(' Content-Length', '')} Content-Md5 Content-Type"
    plain, read = (f"{begin.format('', encoding)} {end}" for encoding in ("", "=gzip"))
    part = "PUT /{bucket}/{key}?partNumber={part}&uploadId={upload}&x-id=UploadPart"
    return Shape(
        {
            "PUT": Call(
                "PUT /{bucket}/{key}?x-id=PutObject", f"{sized} {end} X-Amz-Meta-Mtime=1795447171.936321019", NO_DIGEST
            ),
            "GET": Call("GET /{bucket}/{key}?x-id=GetObject", read),
            "HEAD": Call("HEAD /{bucket}/{key}", plain),
            "LIST": Call("GET /{bucket}?max-keys=1000&prefix=", plain),
            "PART": Call(part, f"{sized} Expect {end}"),
        },
        {"PART": Call(part, f"{sized} Expect {end}", NO_DIGEST)},
        {"amz-sdk-request": "attempt=1; max=10", "user-agent": "rclone/v1.76.0"},
    )


SHAPES = {
    "boto3": _boto3(),
    "aws-sdk-go-v2": _aws_sdk_go(),
    "aws-sdk-java-v2": _aws_sdk_java(),
    "aws-sdk-js-v3": _aws_sdk_js(),
    "aws-crt": _aws_crt(),
    "minio-go": _minio_go(trailing=False),
    "minio-go-trailer": _minio_go(trailing=True),
    "rclone": _rclone(),
}
OPERATIONS = ("PUT", "GET", "HEAD", "LIST", "DELETE-OBJECTS", "PART")
