"""Decodes an aws-chunked body: chunks with or without signatures, and trailing headers.

Sources: "Transferring Payload in Multiple Chunks" and "… Trailing Headers", Amazon S3 API Reference.

    body    = chunk* last-chunk trailer* CRLF
    chunk   = SIZE [;chunk-signature=HEX] CRLF data CRLF          the extension exactly when chunks are signed
    trailer = name:value CRLF                                     with x-amz-trailer-signature last when signed
"""

from __future__ import annotations

import re
from enum import Enum
from hashlib import sha256

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.auth.signatures.request_signature import EMPTY_SHA256, ChunkSigner

MIN_CHUNK = 8192
"""The least bytes of a signed chunk, except the last."""

MAX_LINE = 1024
"""Bytes of a chunk's head or of one trailing header."""

MAX_TRAILERS = 8192
"""Bytes of all trailing headers."""

_HEAD = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;chunk-signature=([!-~]*))?\r")
_TRAILER_SIGNATURE = "x-amz-trailer-signature"


class _State(Enum):
    HEAD = "head of a chunk"
    AFTER_DATA = "line end after the data of a chunk"
    TRAILER = "trailing headers"
    END = "end"


def _unexpected() -> errors.IncompleteBody:
    return errors.IncompleteBody("The request body terminated unexpectedly")


class ChunkedDecoder:
    """Decodes a body as it arrives. Nothing that it returns may become visible before `finish` has returned.

    `signer` is set exactly when chunks are signed. `decoded_length` is `x-amz-decoded-content-length`; `trailer_names`
    are the lower-case names that `x-amz-trailer` announced.
    """

    def __init__(self, *, signer: ChunkSigner | None, decoded_length: int, trailer_names: tuple[str, ...] = ()) -> None:
        self.trailers: dict[str, str] = {}
        """The trailing headers by lower-case name, complete after `finish`."""
        self._signer = signer
        self._missing = decoded_length
        self._names = trailer_names
        self._state = _State.HEAD
        self._left = 0
        self._partial = b""
        self._hash = sha256()
        self._signature = ""
        self._short = False
        self._trailer_bytes = 0
        self._trailer_signed = False
        self._allowed_after_end = b""

    def feed(self, data: bytes) -> list[memoryview]:
        """Return the pieces of payload in `data`, as views of it.

        Raises SignatureDoesNotMatch, IncompleteBody (not this format, or not the announced length),
        InvalidChunkSizeError, MalformedTrailerError, and InvalidRequest for bytes after the end.
        """
        view = memoryview(data)
        pieces = []
        position, end = 0, len(data)
        while position < end:
            if not self._left:
                position = self._read_line(data, position)
                continue
            piece = view[position : position + self._left]
            position += len(piece)
            self._left -= len(piece)
            if self._signer is not None:
                self._hash.update(piece)
            pieces.append(piece)
            if not self._left:
                self._chunk_ends()
        return pieces

    def finish(self) -> None:
        """Check that the body is complete. Raises IncompleteBody or MalformedTrailerError when something is missing."""
        if self._state is _State.END:
            return
        if self._state is _State.TRAILER and self.trailers and not self._partial:
            raise errors.MalformedTrailerError
        raise _unexpected()

    def _read_line(self, data: bytes, position: int) -> int:
        """Take a line, or the part of one that has arrived. Return where it ends."""
        if self._state is _State.END:
            return self._read_after_end(data, position)
        limit = position + MAX_LINE - len(self._partial)
        end = data.find(b"\n", position, limit)
        if end < 0:
            if limit <= len(data):
                raise errors.MalformedTrailerError if self._state is _State.TRAILER else _unexpected()
            self._partial += data[position:]
            return len(data)
        line = self._partial + data[position:end]
        self._partial = b""
        if self._state is _State.HEAD:
            self._chunk_begins(line)
        elif self._state is _State.TRAILER:
            self._trailer(line)
        elif line == b"\r":
            self._state = _State.HEAD
        else:
            raise _unexpected()
        return end + 1

    def _read_after_end(self, data: bytes, position: int) -> int:
        if not self._allowed_after_end.startswith(data[position:]):
            raise errors.InvalidRequest("The request body goes on after the final chunk.")
        self._allowed_after_end = self._allowed_after_end[len(data) - position :]
        return len(data)

    def _chunk_begins(self, line: bytes) -> None:
        match = _HEAD.fullmatch(line)
        if match is None or (match[2] is None) != (self._signer is None):
            raise _unexpected()
        size = int(match[1], 16)
        if size > self._missing:
            raise errors.IncompleteBody
        if self._short and size and self._signer is not None:
            raise errors.InvalidChunkSizeError
        self._short = size < MIN_CHUNK
        self._missing -= size
        self._signature = (match[2] or b"").decode("ascii")
        if size:
            self._left = size
            return
        if self._missing:
            raise errors.IncompleteBody
        if self._signer is not None:
            self._signer.check_chunk(self._signature, EMPTY_SHA256)
        self._state = _State.TRAILER

    def _chunk_ends(self) -> None:
        if self._signer is not None:
            self._signer.check_chunk(self._signature, self._hash.hexdigest())
            self._hash = sha256()
        self._state = _State.AFTER_DATA

    def _trailer(self, line: bytes) -> None:
        self._trailer_bytes += len(line) + 1
        if self._trailer_bytes > MAX_TRAILERS:
            raise errors.MalformedTrailerError
        text = line.decode("latin-1").removesuffix("\r")
        if not text:
            self._trailers_end()
            return
        name, colon, value = text.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if not colon or self._trailer_signed:
            raise errors.MalformedTrailerError
        if name == _TRAILER_SIGNATURE and self._signer is not None:
            signed = "".join([f"{field}:{text}\n" for field, text in self.trailers.items()])
            self._signer.check_trailer(value, sha256(signed.encode("latin-1")).hexdigest())
            self._trailer_signed = True
            return
        if name not in self._names or name in self.trailers:
            raise errors.MalformedTrailerError
        self.trailers[name] = value
        if self._signer is None and not line.endswith(b"\r"):
            # minio-go ends the header by LF CRLF, as AWS's page does before a signature, and the body by CRLF
            self._allowed_after_end = b"\r\n"

    def _trailers_end(self) -> None:
        if len(self.trailers) < len(set(self._names)):
            raise errors.MalformedTrailerError
        if self._signer is not None and self._names and not self._trailer_signed:
            # some clients put an empty line before the signature; finish() raises when none comes
            return
        self._state = _State.END
