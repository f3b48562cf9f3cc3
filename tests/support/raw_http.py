"""The one HTTP client of the tests: sends the bytes it is given and reads answers strictly.

It adds, repeats and follows nothing, so that a test says exactly what goes out and sees exactly what came back.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit
from xml.etree import ElementTree

PATIENCE = 60.0
"""Seconds after which a test that still waits for bytes has failed."""
PIECE = 1 << 16
NAMESPACE = re.compile(r"\{[^}]*\}")

Fields = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Request:
    """One request as it goes out. `path` and `query` are what stands in the request line, escapes and all."""

    method: str
    path: str
    query: str = ""
    headers: Fields = ()
    body: bytes = b""
    length: int | None = -1
    """Content-Length: -1 is the body's own, None sends no such field."""

    def header(self, name: str) -> str | None:
        """The first value of a field."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)

    def having(self, *fields: tuple[str, str], **changes: Any) -> Request:
        """A copy with more fields at the end."""
        return replace(self, headers=(*self.headers, *fields), **changes)

    def without(self, *names: str) -> Request:
        """A copy without some fields."""
        kept = tuple((name, value) for name, value in self.headers if name.lower() not in names)
        return replace(self, headers=kept)

    def changed(self, name: str, value: str) -> Request:
        """A copy in which a field has another value; the field must be there."""
        assert self.header(name) is not None, name
        kept = tuple((known, value if known.lower() == name.lower() else old) for known, old in self.headers)
        return replace(self, headers=kept)

    @property
    def target(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    def head(self, host: str) -> bytes:
        """The bytes of the head. A `host` field of the request's own comes before the given one."""
        lines = [f"{self.method} {self.target} HTTP/1.1"]
        if self.header("host") is None:
            lines.append(f"host: {host}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        length = len(self.body) if self.length == -1 else self.length
        if length is not None and (length or self.method in ("PUT", "POST")):
            lines.append(f"content-length: {length}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    def wire(self, host: str) -> bytes:
        """All of it."""
        return self.head(host) + self.body


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    raw: bytes = field(default=b"", repr=False)

    def tree(self) -> ElementTree.Element:
        """The document of the body, without namespaces."""
        root = ElementTree.fromstring(self.body)
        for element in root.iter():
            element.tag = NAMESPACE.sub("", element.tag)
        return root

    @property
    def code(self) -> str:
        """The S3 error code, empty when the body is no error document."""
        if not self.body.startswith(b"<?xml") or b"<Error>" not in self.body:
            return ""
        root = self.tree()
        return root.findtext("Code", "") if root.tag == "Error" else ""

    @property
    def etag(self) -> str:
        """The ETag without its quotes, empty for none."""
        return self.headers.get("etag", "").strip('"')

    @property
    def closes(self) -> bool:
        """Whether the server ends the connection behind this answer."""
        return self.headers.get("connection") == "close"

    @property
    def version_id(self) -> str:
        """The version that the answer names; there must be one."""
        return self.headers["x-amz-version-id"]

    def all(self, name: str) -> list[str]:
        """The texts of all elements of a name."""
        return [element.text or "" for element in self.tree().iter(name)]


class ConnectionEnded(ConnectionResetError):
    """The server ended the connection in the middle of an answer; `partial` is what came of it."""

    def __init__(self, partial: bytes) -> None:
        super().__init__(f"the connection ended after {partial[:500]!r}")
        self.partial = partial


def parse_head(head: bytes) -> Answer:
    """Parse the head of an answer, in which no field may come twice."""
    lines = head[:-4].decode("latin-1").split("\r\n")
    version, status, _ = lines[0].split(" ", 2)
    assert version == "HTTP/1.1", head
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(": ")
        assert colon, line
        assert name.lower() not in headers, f"{name} came twice"
        headers[name.lower()] = value
    return Answer(int(status), headers, raw=head)


def has_body(head: Answer, method: str) -> bool:
    """Tell whether a body follows the head of an answer to this method."""
    return method != "HEAD" and head.status not in (100, 204, 304)


def make_request(
    method: str, url: str, *fields: tuple[str, str], body: bytes = b"", length: int | None = -1
) -> Request:
    """Make the request that a URL stands for, such as a presigned one."""
    parts = urlsplit(url)
    return Request(method, parts.path, parts.query, (("host", parts.netloc), *fields), body, length)


class Connection:
    """One connection; `look` sees every answer before the test does."""

    def __init__(
        self,
        address: tuple[str, int],
        look: Callable[[Answer], Answer] = lambda answer: answer,
        *,
        patience: float = PATIENCE,
        source: tuple[str, int] | None = None,
        buffer: int | None = None,
    ) -> None:
        """Connect, from an address of choice or with a receive buffer of `buffer` bytes, which then does not grow."""
        self.socket = socket.socket()
        self.socket.settimeout(patience)
        self._look = look
        self._have = bytearray()
        try:
            if buffer is not None:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
            if source is not None:
                self.socket.bind(source)
            self.socket.connect(address)
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def send(self, data: bytes | memoryview) -> None:
        """Send; that the other side has stopped reading is for the answer to tell."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def end(self) -> None:
        """Say that nothing more comes."""
        self.socket.shutdown(socket.SHUT_WR)

    def answer(self, method: str = "GET") -> Answer:
        """Return the next answer whole, looked at."""
        head = self.head()
        body = b""
        if has_body(head, method):
            chunked = "transfer-encoding" in head.headers
            body = self._chunks() if chunked else self.take(int(head.headers["content-length"]))
        return self._look(replace(head, body=body, raw=head.raw + body))

    def head(self) -> Answer:
        """Return the next answer's head; its body is for `take`."""
        return parse_head(self._until(b"\r\n\r\n"))

    def take(self, size: int) -> bytes:
        """Return so many bytes."""
        while len(self._have) < size:
            self._more(size - len(self._have))
        return self._cut(size)

    def rest(self) -> bytes:
        """Return everything until the server ends the connection. Fails when it does not end it."""
        data = self._cut(len(self._have))
        while True:
            try:
                piece = self.socket.recv(PIECE)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def _more(self, size: int = PIECE) -> None:
        piece = self.socket.recv(max(size, PIECE))
        if not piece:
            raise ConnectionEnded(bytes(self._have))
        self._have += piece

    def _cut(self, size: int) -> bytes:
        data = bytes(self._have[:size])
        del self._have[:size]
        return data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._have:
            self._more()
        return self._cut(self._have.index(mark) + len(mark))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self.take(size)
            assert self.take(2) == b"\r\n"
        assert self.take(2) == b"\r\n"
        return body


class Client:
    """Requests one after another on a kept connection, opened again only after an answer that said it closes."""

    def __init__(self, endpoint: str, **options: Any) -> None:
        """Know the endpoint; `options` are those of `Connection`."""
        parts = urlsplit(endpoint)
        self.host = parts.netloc
        self._address, self._options = (parts.hostname or "", parts.port or 80), options
        self._open: Connection | None = None
        self._method = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._open is not None

    @property
    def connection(self) -> Connection:
        """The connection that is open, or a new one."""
        if self._open is None:
            self._open = Connection(self._address, **self._options)
        return self._open

    def connect(self) -> None:
        """Open a connection, if there is none, before anything is sent."""
        assert self.connection

    def begin(self, request: Request) -> None:
        """Send what is there of a request."""
        self._method = request.method
        self.connection.send(request.wire(self.host))

    def send(self, data: bytes | memoryview) -> None:
        """Send more of its body."""
        self.connection.send(data)

    def answer(self) -> Answer:
        """Return its answer whole."""
        answer = self.connection.answer(self._method)
        if answer.closes:
            self.close()
        return answer

    def ask(self, request: Request) -> Answer:
        """Send a request and return its answer."""
        self.begin(request)
        return self.answer()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._open is not None:
            self._open.close()
            self._open = None


class AsyncConnection:
    """One connection from the test's own event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        """Send, and wait until there is room for more."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, method: str = "GET") -> Answer:
        """Return the next answer whole."""
        async with asyncio.timeout(PATIENCE):
            head = await self.head()
            body = b""
            if has_body(head, method):
                chunked = "transfer-encoding" in head.headers
                body = await (self._chunks() if chunked else self.take(int(head.headers["content-length"])))
            return replace(head, body=body, raw=head.raw + body)

    async def head(self) -> Answer:
        """Return the next answer's head; its body is for `take` or `rest`."""
        return parse_head(await self.reader.readuntil(b"\r\n\r\n"))

    async def take(self, size: int) -> bytes:
        """Return so many bytes."""
        return await self.reader.readexactly(size)

    async def ask(self, data: bytes) -> Answer:
        """Send a request as it is and return its answer."""
        await self.send(data)
        return await self.answer()

    async def rest(self) -> bytes:
        """Return everything until the server closes. Fails when it does not, or resets the connection."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read()

    async def lost(self) -> None:
        """Wait for the end of the connection, of whatever kind."""
        async with asyncio.timeout(PATIENCE):
            try:
                while await self.reader.read(PIECE):
                    pass
            except ConnectionError:
                pass

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()

    async def _chunks(self) -> bytes:
        body = b""
        while True:
            size = int((await self.reader.readline()).strip(), 16)
            body += await self.take(size)
            assert await self.take(2) == b"\r\n"
            if not size:
                return body
