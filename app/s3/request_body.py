"""Reads a request body: decodes chunks, counts, hashes, and verifies the announced values."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections import deque
from collections.abc import Awaitable, Callable

from sluice_s3.app.s3.auth.signatures.chunked import ChunkedDecoder
from sluice_s3.app.s3.errors import (
    BadDigest,
    EntityTooLarge,
    IncompleteBody,
    InvalidArgument,
    InvalidRequest,
    MaxMessageLengthExceeded,
    MissingContentLength,
    NotImplemented,
    XAmzContentSHA256Mismatch,
)
from sluice_s3.app.s3.wire import checksums
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store.etags import CRC64NVME, MD5, crc64_etag
from sluice_s3.storage_drivers.base import Buffer

MAX_PUT = 5 * 1024**3
"""Bytes of one PutObject or UploadPart, by default ("Amazon S3 multipart upload limits")."""
MAX_DOCUMENT = 2 * 1024**2
"""Bytes of a request document (1000 keys of 1024 bytes fit, escaped)."""
READ_BYTES = 256 * 1024
JOINED_FRAGMENT_BYTES = 1024
"""Bytes below which a fragment is joined with the next one."""
STREAMING = "STREAMING-"
SIGNED_STREAMS = frozenset({"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"})
STREAMING_PAYLOADS = SIGNED_STREAMS | {"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}


class RequestBody:
    """A `storage_drivers.base.Source` over a request's body.

    The constructor reads nothing of the body; it raises for announced values that are malformed or contradict each
    other. `etag` and `checksum` are set after `verify`. `checksum` uses the algorithm that the request announces, else
    the parameter's (empty: none); with `fixed` always the parameter's. Without `promised` the checksum headers do not
    apply to this body. More than `largest` bytes are refused.

    In the constructor `etag` is the kind of ETag, empty: none. With Content-MD5 it is the MD5 all the same, which is
    computed anyway.

    The bytes that it holds count against `request.memory` until `digest` has taken them: then they have one of the few
    threads. While memory is short, `read` returns what it has, and without any it waits its turn before it takes more.
    """

    size: int | None = None
    """Bytes; None until the end of a body in HTTP's own chunks, and where the announced values are refused."""
    etag = ""
    checksum = ""
    admit: Callable[[int], Awaitable[None]] | None = None
    """Admits further bytes of a body of unknown size; raises to refuse them."""
    _received = 0
    _ended = False
    _digested = _settled = 0
    """Hashed pieces, and those whose memory is released."""
    _waiter: asyncio.AbstractEventLoop | None = None
    _decoder: ChunkedDecoder | None = None
    """None for a body that is not in S3's chunks."""
    _sha256: hashlib._Hash | None = None
    """None for a body whose hash is not signed."""
    _crc64: checksums.Hasher | None = None
    """Of the ETag, unless that is an MD5."""
    _shares_crc64 = False
    """Whether that is the hasher of a checksum too."""

    def __init__(
        self,
        request: S3Request,
        *,
        checksum: str = "CRC64NVME",
        fixed: bool = False,
        etag: str = MD5,
        promised: bool = True,
        largest: int = MAX_PUT,
    ) -> None:
        request.body = self
        self._request = request
        self._receive = request.receive
        self._whole = request.whole_body
        self._memory = request.memory
        self._held_bytes: deque[int] = deque()
        """Bytes received for each piece that is not hashed yet."""
        self._largest = largest
        self._expected = checksums.expected_checksum(request) if promised else checksums.NO_CHECKSUM
        self.promised_algorithm = self._expected.algorithm
        self.algorithm = checksum if fixed or not self.promised_algorithm else self.promised_algorithm
        self._md5_promised = checksums.content_md5(request)
        md5 = etag == MD5 or self._md5_promised is not None
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None
        self._hasher = self._new_hasher(self.algorithm) if self.algorithm else None
        self._promised_hasher = self._hasher
        if self.promised_algorithm not in ("", self.algorithm):
            self._promised_hasher = self._new_hasher(self.promised_algorithm)
        if etag == CRC64NVME and self._md5 is None:
            hashers = {self.algorithm: self._hasher, self.promised_algorithm: self._promised_hasher}
            shared = hashers.get("CRC64NVME")
            self._crc64, self._shares_crc64 = shared or self._new_hasher("CRC64NVME"), shared is not None
        payload = request.payload
        if payload in STREAMING_PAYLOADS:
            self.size = size = _decoded_length(request)
            self._decoder = _decoder(request, size)
        else:
            _refuse_unmarked_chunks(request)
            self.size = _plain_length(request)
            if payload != "UNSIGNED-PAYLOAD":
                self._sha256 = hashlib.sha256()
                self._sha256_promised = payload
        self._check_size(self.size or 0)

    def _new_hasher(self, algorithm: str) -> checksums.Hasher:
        if algorithm == "MD5" and self._md5 is not None:  # the slowest hash is not computed twice
            return checksums.SharedMd5(self._md5)
        return checksums.ALGORITHMS[algorithm].new()

    async def read(self) -> Buffer:
        """Return the next piece, about `READ_BYTES` bytes; empty at the end.

        Raises IncompleteBody, and the errors of chunks. The piece with the last byte is returned only after the end of
        the body, trailers included.
        """
        if self._whole is not None:
            return await self._take_whole(self._whole)
        self._settle()
        self._held_bytes.append(0)
        pieces: list[Buffer] = []
        have = 0
        while not self._ended and (have < READ_BYTES or self._received == self.size):
            if self._memory.short and self._received != self.size:
                if pieces:
                    break
                data = await self._next_within_memory()
            else:
                data = await self._next()
            if self._decoder is None:
                if data:
                    _add(pieces, data)
                    have += len(data)
                    self._received += len(data)
            else:
                for piece in self._decoder.feed(data):
                    _add(pieces, piece)
                    have += len(piece)
                    self._received += len(piece)
            if self.size is None:
                self._check_size(self._received)
            elif self._received > self.size:
                raise IncompleteBody("The request body is longer than it says.")
        if self.size is None and self.admit is not None:
            await self.admit(self._received)
        if self._ended:
            if self.size is None:
                self.size = self._received
            if self._decoder is not None and pieces:
                self._decoder.finish()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _take_whole(self, data: bytes) -> Buffer:
        """Return a complete body, whose bytes the server holds and counts."""
        self._ended, self._whole = True, None
        piece: Buffer = data if self._decoder is None else b"".join(self._decoder.feed(data))
        self._received = len(piece)
        if self.size is None:
            self._check_size(self._received)
            if self.admit is not None:
                await self.admit(self._received)
            self.size = self._received
        elif self._received > self.size:
            raise IncompleteBody("The request body is longer than it says.")
        if self._decoder is not None and piece:
            self._decoder.finish()
        return piece

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] != "http.request":
            raise IncompleteBody()
        data: bytes = message["body"]
        self._ended = not message.get("more_body", False)
        self._memory.take(len(data))
        self._held_bytes[-1] += len(data)
        return data

    async def _next_within_memory(self) -> bytes:
        self._waiter = asyncio.get_running_loop()
        self._settle()  # release pieces that were hashed before `digest` saw a waiter
        await self._memory.acquire(READ_BYTES)
        try:
            return await self._next()
        finally:
            self._memory.release(READ_BYTES)

    def _settle(self) -> None:
        while self._settled < self._digested and self._held_bytes:
            self._settled += 1
            self._memory.release(self._held_bytes.popleft())

    def close(self) -> None:
        """Release all memory at the end of the request."""
        if self._held_bytes:
            self._memory.release(sum(self._held_bytes))
            self._held_bytes.clear()

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise EntityTooLarge(ProposedSize=size, MaxSizeAllowed=self._largest)

    def digest(self, piece: Buffer) -> None:
        """Update all hashes with a piece."""
        self._hash(piece)
        self._digested += 1
        if self._waiter is not None:
            self._waiter.call_soon_threadsafe(self._settle)

    def _hash(self, piece: Buffer) -> None:
        if self._md5 is not None:
            self._md5.update(piece)
        if self._sha256 is not None:
            self._sha256.update(piece)
        if self._hasher is not None:
            self._hasher.update(piece)
        if self._promised_hasher is not self._hasher and self._promised_hasher is not None:
            self._promised_hasher.update(piece)
        if self._crc64 is not None and not self._shares_crc64:
            self._crc64.update(piece)

    def verify(self) -> None:
        """Raise IncompleteBody, XAmzContentSHA256Mismatch or BadDigest when the body is not the announced one."""
        if self._received != self.size:
            raise IncompleteBody()
        if self._decoder is not None:
            self._decoder.finish()
        if self._sha256 is not None and not hmac.compare_digest(self._sha256.hexdigest(), self._sha256_promised):
            raise XAmzContentSHA256Mismatch(
                ClientComputedContentSHA256=self._sha256_promised,
                S3ComputedContentSHA256=self._sha256.hexdigest(),
            )
        if self._md5 is not None:
            if self._md5_promised is not None and self._md5.digest() != self._md5_promised:
                raise BadDigest(
                    "The Content-MD5 you specified did not match what we received.",
                    ExpectedDigest=base64.b64encode(self._md5_promised).decode(),
                    CalculatedDigest=base64.b64encode(self._md5.digest()).decode(),
                )
            self.etag = self._md5.hexdigest()
        elif self._crc64 is not None:
            self.etag = crc64_etag(self._crc64.digest_base64(), self._received)
        if self._hasher is not None:
            self.checksum = self._hasher.digest_base64()
        if self.promised_algorithm and self._promised_hasher is not None:
            promised = self._expected.final(self._decoder.trailers if self._decoder is not None else {})
            if promised and promised != self._promised_hasher.digest_base64():
                raise checksums.mismatch(self.promised_algorithm)

    async def collect(self, limit: int = MAX_DOCUMENT) -> bytes:
        """Return the whole body, verified. Raises MaxMessageLengthExceeded over `limit` bytes."""
        self._request.is_document = True
        pieces = []
        while (self.size or 0) <= limit >= self._received and (piece := await self.read()):
            self._hash(piece)  # not `digest`: the piece stays in memory
            pieces.append(bytes(piece))
        if self._received > limit or self.size is None or self.size > limit:
            raise MaxMessageLengthExceeded(MaxMessageLengthBytes=limit)
        self.verify()
        return b"".join(pieces)


def _add(pieces: list[Buffer], piece: Buffer) -> None:
    """Append a piece. Small ones share a buffer: an object for each would take a hundred times its bytes."""
    if len(piece) >= JOINED_FRAGMENT_BYTES or not pieces:
        pieces.append(piece)
    elif type(pieces[-1]) is bytearray:
        pieces[-1] += piece
    else:
        pieces.append(bytearray(piece))


async def read_document(request: S3Request, limit: int = MAX_DOCUMENT) -> bytes:
    """Return the body of a request with an XML or JSON document.

    Raises MaxMessageLengthExceeded over `limit` bytes.
    """
    return await RequestBody(request, checksum="", etag="").collect(limit)


def _plain_length(request: S3Request) -> int | None:
    """Return the bytes of the body; None for HTTP's own chunks."""
    if request.content_length is None and "transfer-encoding" not in request.headers:
        return 0
    return request.content_length


def _decoded_length(request: S3Request) -> int:
    value = request.headers.get("x-amz-decoded-content-length")
    if value is None:
        raise MissingContentLength()
    if not (value.isascii() and value.isdigit()) or len(value) > 19:
        raise InvalidArgument(ArgumentName="x-amz-decoded-content-length", ArgumentValue=value[:64])
    return int(value)


def _decoder(request: S3Request, size: int) -> ChunkedDecoder:
    if request.signature is None:
        raise InvalidRequest("The aws-chunked forms need a signed request.")
    signer = request.signature.chunk_signer(request.secret) if request.payload in SIGNED_STREAMS else None
    names: tuple[str, ...] = ()
    if request.payload.endswith("-TRAILER"):
        names = tuple(
            name.strip().lower() for name in request.headers.get("x-amz-trailer", "").split(",") if name.strip()
        )
    return ChunkedDecoder(signer=signer, decoded_length=size, trailer_names=names)


def _refuse_unmarked_chunks(request: S3Request) -> None:
    if request.payload.startswith(STREAMING):
        raise NotImplemented()
    if request.signature is None and request.headers.get("x-amz-content-sha256", "").startswith(STREAMING):
        raise InvalidRequest("The aws-chunked forms need a signed request.")
    # a signed body hash excludes signed chunks, whatever the content encoding
    unhashed = request.payload == "UNSIGNED-PAYLOAD"
    if unhashed and "aws-chunked" in request.headers.get("content-encoding", "").lower():
        raise InvalidRequest("aws-chunked needs an x-amz-content-sha256 that names its form.")
