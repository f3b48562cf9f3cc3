"""Prepared requests in the shapes of real clients."""

from __future__ import annotations

import base64
import hashlib
import zlib
from functools import cached_property, lru_cache

from awscrt import checksums

from sluice_s3.loadtests.clients.signing import Field, Signed, Signer
from sluice_s3.loadtests.cpu.client import Request
from sluice_s3.loadtests.cpu.shapes import COMMON, CRC32, CRC32C, NEVER_SIGNED, Encoding, Shape

COMPUTED = frozenset({"authorization", "host", "x-amz-content-sha256", "x-amz-date"})
"""Fields that the signer fills in."""
LISTED_KEYS = 1000


def listed_paths(bucket: str) -> list[str]:
    """Return the paths of the keys that a LIST returns, in the bucket at the path `bucket`.

    They have a blank and brackets, which `encoding-type=url` encodes.
    """
    return [f"{bucket}/key%20%28{number}%29" for number in range(LISTED_KEYS)]


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


class Body:
    """A body with its digests, which requests share."""

    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)

    @cached_property
    def sha256(self) -> str:
        """The digest that is signed."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def md5(self) -> bytes:
        """The digest of Content-MD5 and of the ETag."""
        return hashlib.md5(self.data).digest()

    @cached_property
    def checksums(self) -> dict[str, str]:
        """The values of checksum fields, by name."""
        found = {CRC32: zlib.crc32(self.data), CRC32C: checksums.crc32c(bytes(self.data))}
        return {name: _base64(value.to_bytes(4, "big")) for name, value in found.items()}

    def chunks(self, size: int) -> list[memoryview]:
        """Return the pieces of at most `size` bytes."""
        return [self.data[start : start + size] for start in range(0, len(self.data), size)]


EMPTY = Body(b"")
LINE_END = "\n"


def shaped(
    signer: Signer,
    shape: Shape,
    operation: str,
    path: str,
    body: Body = EMPTY,
    *,
    tls: bool = False,
    part: tuple[int, str] = (0, ""),
) -> Request:
    """Return a client's request for an object's `path`: `/bucket/key`, or `/bucket` to list.

    `body` is what is stored, or, for GET, what is there. `part` is number and upload. DeleteObjects names the one key.
    Raises ValueError if the client has no such operation.
    """
    call = shape.call(operation, tls=tls)
    if call is None:
        raise ValueError(f"the client sends no {operation}")
    bucket, _, key = path[1:].partition("/")
    method, _, target = call.target.format(bucket=bucket, key=key, part=part[0], upload=part[1]).partition(" ")
    sent = body if operation in ("PUT", "PART") else EMPTY
    if operation == "DELETE-OBJECTS":
        sent = Body(shape.delete.format(key=key).encode())
    encoding = call.encoding
    known = COMMON | dict(shape.values) | _computed(encoding, sent, body)
    fields = [_field(word, known) for word in call.fields.split()]
    signed = signer.sign(method, target, encoding.payload or sent.sha256, fields, separator=encoding.separator)
    return Request(
        signed.head,
        memoryview(_encode(encoding, sent, signed)) if len(sent.data) else None,
        size=len(body.data) if operation == "GET" else -1,
        bodiless=method == "HEAD",
        waits=shape.waits and b"\r\nexpect:" in signed.head.lower(),
    )


def _field(word: str, known: dict[str, str]) -> Field:
    name, equals, value = word.removeprefix("~").partition("=")
    lower = name.lower()
    is_signed = not word.startswith("~") and lower not in NEVER_SIGNED
    if lower in COMPUTED:
        return Field(name, None, is_signed)
    return Field(name, value if equals else known[lower], is_signed)


def _computed(encoding: Encoding, sent: Body, there: Body) -> dict[str, str]:
    length = len(sent.data)
    return {
        **sent.checksums,
        "content-length": str(_encoded_length(encoding, length)),
        "content-md5": _base64(sent.md5),
        "if-match": f'"{there.md5.hex()}"',
        "range": f"bytes=0-{len(there.data) - 1}",
        "x-amz-decoded-content-length": str(length),
        "x-amz-trailer": encoding.trailer,
    }


@lru_cache
def _encoded_length(encoding: Encoding, length: int) -> int:
    """Return the bytes of an encoded body. Signatures and checksums have the same length for all."""
    return len(_encode(encoding, Body(bytes(length)), Signed(b"", "", "", "", b"")))


def _encode(encoding: Encoding, body: Body, signed: Signed) -> bytes | memoryview:
    if not encoding.chunk:
        return body.data
    pieces = []
    signature = signed.signature
    for chunk in body.chunks(encoding.chunk):
        extension = b""
        if encoding.signs_chunks:
            signature = signed.sign_chunk(signature, chunk)
            extension = f";chunk-signature={signature}".encode()
        pieces.append(b"%x%b\r\n%b\r\n" % (len(chunk), extension, bytes(chunk)))
    whole = b"".join(pieces) + _end(encoding, body, signed, signature)
    if not encoding.http_chunk:
        return whole
    parts = Body(whole).chunks(encoding.http_chunk)
    return b"".join(b"%x\r\n%b\r\n" % (len(part), bytes(part)) for part in [*parts, EMPTY.data])


def _end(encoding: Encoding, body: Body, signed: Signed, previous: str) -> bytes:
    """Return the last chunk, and the trailer with its signature."""
    lines = ["0"]
    if encoding.signs_chunks:
        previous = signed.sign_chunk(previous, b"")
        lines[0] += f";chunk-signature={previous}"
    lines[0] += "\r\n"
    if encoding.trailer:
        header = f"{encoding.trailer}:{body.checksums[encoding.trailer]}"
        lines.append(header + encoding.trailer_end)
        if encoding.signs_chunks:
            lines.append(f"x-amz-trailer-signature:{signed.sign_trailer(previous, header + LINE_END)}\r\n")
    return "".join([*lines, "\r\n"]).encode()
