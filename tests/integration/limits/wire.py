"""Requests that cost little and are never repeated: signed heads, bodies made as they are sent."""

from __future__ import annotations

import hashlib
import random
import struct

from tests.support.gateway import ACCESS_KEY, SECRET_KEY
from tests.support.raw_http import Answer, Client, Connection, Request
from tests.support.signing import UNSIGNED, Key, Way, sign_full

MIB = 1024 * 1024
ROOT = Key(ACCESS_KEY, SECRET_KEY)
PATIENCE = 600.0
"""Seconds without a byte after which a test has failed; 10 GiB may take minutes to sync."""


class Content:
    """A body of `size` bytes of which no two MiB are alike, made again each time it is needed."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self._block = bytearray(random.Random(seed).randbytes(MIB))

    def _pieces(self, start: int, count: int) -> list[tuple[int, int]]:
        return [(number, min(MIB, start + count - number)) for number in range(start, start + count, MIB)]

    def _at(self, offset: int) -> bytearray:
        struct.pack_into("<Q", self._block, 0, offset)
        return self._block

    def some(self, start: int, end: int) -> bytes:
        """Bytes of the MiB that `start` is in, up to `end` or the end of that MiB."""
        at = start % MIB
        return bytes(self._at(start - at)[at : at + min(end, self.size) - start])

    def send(self, connection: Connection, start: int = 0, count: int | None = None) -> bytes:
        """Send `count` bytes at `start`, a whole number of MiB; returns their MD5."""
        md5 = hashlib.md5(usedforsecurity=False)
        for offset, size in self._pieces(start, self.size if count is None else count):
            piece = memoryview(self._at(offset))[:size]
            md5.update(piece)
            connection.send(piece)
        return md5.digest()

    def read(self, connection: Connection) -> None:
        """Read an answer, whose body must be this content."""
        head = connection.head()
        assert head.status == 200, head
        assert int(head.headers["content-length"]) == self.size
        for offset, size in self._pieces(0, self.size):
            expected = self._at(offset)
            assert connection.take(size) == (expected if size == MIB else expected[:size]), f"the MiB at {offset}"


class Wire(Client):
    """Signed requests one after another on a kept connection."""

    def __init__(self, endpoint: str, timeout: float = PATIENCE, **options: int) -> None:
        super().__init__(endpoint, patience=timeout, **options)

    def begin_signed(self, method: str, path: str, query: str = "", length: int | None = None) -> None:
        """Send a signed head. `query` is encoded."""
        self.begin(
            sign_full(Request(method, path, query, length=length), ROOT, Way(self.host, payload=UNSIGNED)).request
        )

    def ask_signed(self, method: str, path: str, query: str = "", body: bytes | None = None) -> Answer:
        """Send one request and return its answer."""
        self.begin_signed(method, path, query, None if body is None else len(body))
        if body:
            self.send(body)
        return self.answer()

    def put(self, path: str, content: Content, query: str = "", start: int = 0, count: int | None = None) -> str:
        """PUT content, or `count` bytes of it, which must succeed; returns the ETag, which is compared with the MD5."""
        count = content.size if count is None else count
        self.begin_signed("PUT", path, query, count)
        digest = content.send(self.connection, start, count)
        answer = self.answer()
        assert answer.status == 200, answer
        assert answer.etag == digest.hex()
        return digest.hex()

    def get(self, path: str, content: Content) -> None:
        """GET what must be this content."""
        self.begin_signed("GET", path)
        content.read(self.connection)
