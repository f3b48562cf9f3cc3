"""A request body on its way to a blob: un-chunked, counted, hashed, and checked against all that was promised of it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections import deque
from collections.abc import Awaitable, Callable

from app.s3 import checksums
from app.s3.errors import (
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
from app.s3.request import S3Request
from app.s3.signing.chunked import ChunkedDecoder
from storage_drivers.base import Buffer

MAX_PUT = 5 * 1024**3
"""Bytes of one PutObject or UploadPart ("Amazon S3 multipart upload limits"), unless the setting says otherwise."""
MAX_DOCUMENT = 2 * 1024**2
"""Bytes of a request document (1000 keys of 1024 bytes, escaped, fit)."""
PIECE = 256 * 1024
SMALL = 1024
"""Bytes of what came under which it is put together with what comes next."""
STREAMING = "STREAMING-"
SIGNED_STREAMS = frozenset({"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"})
STREAMS = SIGNED_STREAMS | {"STREAMING-UNSIGNED-PAYLOAD-TRAILER"}


class Body:
    """A `storage_drivers.base.Source` over a request's body.

    Making one reads nothing of the body; it raises for promises that are malformed or contradict each other. `etag`
    and `checksum` are there after `verify`. `checksum` is of the algorithm that the request promises one of, else of
    the given one (empty: none); with `fixed` always of the given one. Without `promised` the checksum headers are not
    about this body. More than `largest` bytes are refused.

    What it holds counts against `request.memory` until `digest` took it: then it has its thread, and those are few.
    While memory is short, `read` gives what it has, and without any it waits its turn before it takes more.
    """

    def __init__(
        self,
        request: S3Request,
        *,
        checksum: str = "CRC64NVME",
        fixed: bool = False,
        etag: bool = True,
        promised: bool = True,
        largest: int = MAX_PUT,
    ) -> None:
        request.body = self
        self._receive = request.receive
        self._memory = request.memory
        self._held: deque[int] = deque()
        """Bytes that came for each piece that is not hashed yet."""
        self._digested = self._settled = 0
        """Pieces that were hashed, and those whose memory was given back."""
        self._waiter: asyncio.AbstractEventLoop | None = None
        self._largest = largest
        self._ended = False
        self._received = 0
        self._expected = checksums.requested(request) if promised else checksums.NOTHING
        self.promised_algorithm = self._expected.algorithm
        self.algorithm = checksum if fixed or not self.promised_algorithm else self.promised_algorithm
        self._md5_promised = checksums.content_md5(request)
        md5 = etag or self._md5_promised is not None
        self._md5 = hashlib.md5(usedforsecurity=False) if md5 else None
        self._hasher = self._new_hasher(self.algorithm) if self.algorithm else None
        self._promised_hasher = self._hasher
        if self.promised_algorithm not in ("", self.algorithm):
            self._promised_hasher = self._new_hasher(self.promised_algorithm)
        payload = request.payload
        self.size: int | None
        """Bytes; None until its end for a body in HTTP's own chunks."""
        self._decoder: ChunkedDecoder | None = None
        self._sha256 = None
        if payload in STREAMS:
            self.size = size = _decoded_length(request)
            self._decoder = _decoder(request, size)
        else:
            _refuse_unmarked_chunks(request)
            self.size = _plain_length(request)
            if payload != "UNSIGNED-PAYLOAD":
                self._sha256 = hashlib.sha256()
                self._sha256_promised = payload
        self._check_size(self.size or 0)
        self.etag = ""
        self.checksum = ""
        self.admit: Callable[[int], Awaitable[None]] | None = None
        """Asked, while a body comes whose size is not known, whether so many bytes may come; raises to refuse them."""

    def _new_hasher(self, algorithm: str) -> checksums.Hasher:
        if algorithm == "MD5" and self._md5 is not None:  # what takes longest is not done twice
            return checksums.Hashed(self._md5)
        return checksums.ALGORITHMS[algorithm].new()

    async def read(self) -> Buffer:
        """The next piece, about `PIECE` bytes; empty at the end. Raises IncompleteBody and what chunks can be wrong in.

        The piece that holds the last byte is given only after the end of the body was seen, trailers included.
        """
        self._settle()
        self._held.append(0)
        pieces: list[Buffer] = []
        have = 0
        while not self._ended and (have < PIECE or self._received == self.size):
            if self._memory.short and self._received != self.size:
                if pieces:
                    break
                data = await self._next_in_turn()
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

    def take_whole(self, data: bytes) -> Buffer:
        """The body when all of it has come, in the place of `read`; it is held, and counted, by whoever gives it."""
        self._ended = True
        piece: Buffer = data if self._decoder is None else b"".join(self._decoder.feed(data))
        self._received = len(piece)
        if self.size is None:
            self._check_size(self._received)
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
        self._held[-1] += len(data)
        return data

    async def _next_in_turn(self) -> bytes:
        self._waiter = asyncio.get_running_loop()
        self._settle()  # what was hashed before `digest` could see who waits
        await self._memory.acquire(PIECE)
        try:
            return await self._next()
        finally:
            self._memory.release(PIECE)

    def _settle(self) -> None:
        while self._settled < self._digested and self._held:
            self._settled += 1
            self._memory.release(self._held.popleft())

    def close(self) -> None:
        """The request is over: nothing of it is held any more."""
        self._memory.release(sum(self._held))
        self._held.clear()

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise EntityTooLarge(ProposedSize=size, MaxSizeAllowed=self._largest)

    def digest(self, piece: Buffer) -> None:
        """Take a piece into every hash that is wanted."""
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

    def verify(self) -> None:
        """Raises IncompleteBody, XAmzContentSHA256Mismatch or BadDigest when the body is not what was promised."""
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
        if self._hasher is not None:
            self.checksum = self._hasher.digest_base64()
        if self.promised_algorithm and self._promised_hasher is not None:
            promised = self._expected.final(self._decoder.trailers if self._decoder is not None else {})
            if promised and promised != self._promised_hasher.digest_base64():
                raise checksums.mismatch(self.promised_algorithm)

    async def collect(self, limit: int = MAX_DOCUMENT) -> bytes:
        """The whole body, verified. Raises MaxMessageLengthExceeded over `limit` bytes."""
        pieces = []
        while (self.size or 0) <= limit >= self._received and (piece := await self.read()):
            self._hash(piece)  # not `digest`: the piece is held on
            pieces.append(bytes(piece))
        if self._received > limit or self.size is None or self.size > limit:
            raise MaxMessageLengthExceeded(MaxMessageLengthBytes=limit)
        self.verify()
        return b"".join(pieces)


def _add(pieces: list[Buffer], piece: Buffer) -> None:
    """Put it behind the others. Small ones share a buffer: an object for each takes a hundred times its bytes."""
    if len(piece) >= SMALL or not pieces:
        pieces.append(piece)
    elif type(pieces[-1]) is bytearray:
        pieces[-1] += piece
    else:
        pieces.append(bytearray(piece))


async def document(request: S3Request, limit: int = MAX_DOCUMENT) -> bytes:
    """The body of a request that is a document: XML or JSON. Raises MaxMessageLengthExceeded over `limit` bytes."""
    return await Body(request, checksum="", etag=False).collect(limit)


def _plain_length(request: S3Request) -> int | None:
    """Bytes of the body, or None when it comes in HTTP's own chunks."""
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
    # a body whose own hash is signed is no stream of signed chunks, whatever its encoding says
    unhashed = request.payload == "UNSIGNED-PAYLOAD"
    if unhashed and "aws-chunked" in request.headers.get("content-encoding", "").lower():
        raise InvalidRequest("aws-chunked needs an x-amz-content-sha256 that names its form.")
