"""HTTP in bytes over a real socket: says exactly what it is told to, and looks at every answer with suspicion."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

PATIENCE = 60.0
"""Seconds after which a test that still waits for bytes has failed."""
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

    def all(self, name: str) -> list[str]:
        """The texts of all elements of a name."""
        return [element.text or "" for element in self.tree().iter(name)]


@dataclass
class Watch:
    """What no answer may ever hold. Everything received passes `look`."""

    forbidden: tuple[bytes, ...]
    s3: bool = True
    """Errors must be S3's documents."""

    def look(self, answer: Answer) -> Answer:
        assert answer.status != 500, answer
        for text in (b"Traceback (most recent", b'.py", line', b"sqlite", b"Errno", *self.forbidden):
            assert text not in answer.raw, f"{text!r} in {answer.raw[:2000]!r}"
        if self.s3 and answer.status >= 400 and answer.body:
            assert answer.headers.get("content-type") == "application/xml", answer
            assert answer.code, answer
            assert answer.tree().findtext("RequestId") == answer.headers["x-amz-request-id"]
        return answer


class Connection:
    """One connection."""

    def __init__(self, address: tuple[str, int], watch: Watch) -> None:
        self.socket = socket.create_connection(address, PATIENCE)
        self.watch = watch
        self._have = b""

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send; that the other side has stopped reading is for the answer to tell."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def end(self) -> None:
        """Say that nothing more comes."""
        self.socket.shutdown(socket.SHUT_WR)

    def answer(self, method: str = "GET") -> Answer:
        """The next answer, looked at."""
        head = self._until(b"\r\n\r\n")
        lines = head[:-4].decode("latin-1").split("\r\n")
        version, status, _ = lines[0].split(" ", 2)
        assert version == "HTTP/1.1"
        headers: dict[str, str] = {}
        for line in lines[1:]:
            name, colon, value = line.partition(": ")
            assert colon, line
            assert name.lower() not in headers, f"{name} came twice"
            headers[name.lower()] = value
        code = int(status)
        body = b""
        if method != "HEAD" and code not in (100, 204, 304):
            body = self._chunks() if "transfer-encoding" in headers else self._take(int(headers["content-length"]))
        return self.watch.look(Answer(code, headers, body, head + body))

    def rest(self) -> bytes:
        """Everything until the server ends the connection. Fails when it does not end it."""
        data, self._have = self._have, b""
        while True:
            try:
                piece = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return data
            if not piece:
                return data
            data += piece

    def _more(self) -> None:
        piece = self.socket.recv(1 << 16)
        assert piece, f"the connection ended after {self._have[:500]!r}"
        self._have += piece

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._have:
            self._more()
        at = self._have.index(mark) + len(mark)
        data, self._have = self._have[:at], self._have[at:]
        return data

    def _take(self, size: int) -> bytes:
        while len(self._have) < size:
            self._more()
        data, self._have = self._have[:size], self._have[size:]
        return data

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._take(size)
            assert self._take(2) == b"\r\n"
        assert self._take(2) == b"\r\n"
        return body


def xml(root: str, inner: str) -> bytes:
    """A request document."""
    return f'<{root} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</{root}>'.encode()


def cases(table: dict[str, Any] | Iterable[str]) -> Any:
    """Arguments for `pytest.mark.parametrize` over a table of named bad inputs."""
    return {"argvalues": list(table), "ids": [re.sub(r"\W+", "-", name).strip("-") or "empty" for name in table]}
