"""A client that costs little and retries nothing: http.client, signed heads, bodies made as they are sent."""

from __future__ import annotations

import hashlib
import random
import re
import socket
import struct
from http.client import HTTPConnection, HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit

from sluice_s3.loadtests.clients.signing import Signer
from tests.support.gateway import ACCESS_KEY, SECRET_KEY

MIB = 1024 * 1024
PATIENCE = 600.0
"""Seconds without a byte after which a test has failed; 10 GiB may take minutes to sync."""


class Content:
    """A body of `size` bytes of which no two MiB are alike, made again each time it is needed."""

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = size
        self._block = bytearray(random.Random(seed).randbytes(MIB))
        self._compared = bytearray(MIB)

    def _pieces(self, start: int, count: int) -> list[tuple[int, int]]:
        return [(number, min(MIB, start + count - number)) for number in range(start, start + count, MIB)]

    def _at(self, offset: int) -> bytearray:
        struct.pack_into("<Q", self._block, 0, offset)
        return self._block

    def some(self, start: int, end: int) -> bytes:
        """Bytes of the MiB that `start` is in, up to `end` or the end of that MiB."""
        at = start % MIB
        return bytes(self._at(start - at)[at : at + min(end, self.size) - start])

    def send(self, connection: HTTPConnection, start: int = 0, count: int | None = None) -> bytes:
        """Send `count` bytes at `start`, a whole number of MiB; returns their MD5."""
        md5 = hashlib.md5(usedforsecurity=False)
        for offset, size in self._pieces(start, self.size if count is None else count):
            piece = memoryview(self._at(offset))[:size]
            md5.update(piece)
            connection.send(piece)
        return md5.digest()

    def read(self, response: HTTPResponse) -> None:
        """Read an answer's body, which must be this content, all of it and nothing more."""
        for offset, size in self._pieces(0, self.size):
            view = memoryview(self._compared)
            got = 0
            while got < size and (count := response.readinto(view[got:size])):
                got += count
            assert got == size, f"the body ended at {offset + got} of {self.size} bytes"
            expected = self._at(offset)
            equal = self._compared == expected if size == MIB else self._compared[:size] == expected[:size]
            assert equal, f"the MiB at {offset} is another"
        assert response.read() == b"", "bytes behind the body"


class Answer(NamedTuple):
    """An answer whole."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def code(self) -> str:
        """The S3 error code, empty when the body is no error document."""
        found = re.search(rb"<Error><Code>(\w+)</Code>", self.body)
        return found[1].decode() if found else ""


class Wire:
    """Requests one after another on a kept connection, opened again only after an answer that said it closes."""

    def __init__(self, endpoint: str, timeout: float = PATIENCE) -> None:
        target = urlsplit(endpoint)
        self._signer = Signer(target.netloc, ACCESS_KEY, SECRET_KEY)
        self.http = HTTPConnection(target.hostname or "", target.port, timeout=timeout)

    def begin(self, method: str, path: str, query: str = "", length: int | None = None) -> None:
        """Send a signed head. `query` is encoded and sorted, and every name in it has a `=`."""
        line, *fields = self._signer.head(method, path, query, length).decode().rstrip().split("\r\n")
        self.http.putrequest(method, line.split(" ")[1], skip_host=True, skip_accept_encoding=True)
        for field in fields:
            self.http.putheader(*field.split(": ", 1))
        self.http.endheaders()

    def answer(self) -> Answer:
        """The answer whole."""
        response = self.http.getresponse()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())

    def ask(self, method: str, path: str, query: str = "", body: bytes | None = None) -> Answer:
        """One request."""
        self.begin(method, path, query, None if body is None else len(body))
        if body:
            self.http.send(body)
        return self.answer()

    def put(self, path: str, content: Content, query: str = "", start: int = 0, count: int | None = None) -> str:
        """PUT content, or `count` bytes of it, which must succeed; returns the ETag, which is compared with the MD5."""
        count = content.size if count is None else count
        self.begin("PUT", path, query, count)
        digest = content.send(self.http, start, count)
        answer = self.answer()
        assert answer.status == 200, answer
        assert answer.headers["etag"] == f'"{digest.hex()}"'
        return digest.hex()

    def get(self, path: str, content: Content) -> None:
        """GET what must be this content."""
        self.begin("GET", path)
        response = self.http.getresponse()
        assert response.status == 200, response.read()
        assert int(response.headers["content-length"]) == content.size
        content.read(response)

    @property
    def socket(self) -> socket.socket:
        """The socket of the connection that is open."""
        found: socket.socket = self.http.sock
        return found

    def connect_with_buffer(self, size: int) -> None:
        """Connect with a receive buffer of `size` bytes, which then does not grow."""
        made = socket.socket()
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        made.settimeout(self.http.timeout)
        made.connect((self.http.host, self.http.port))
        self.http.sock = made

    def close(self) -> None:
        """Close the connection."""
        self.http.close()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
