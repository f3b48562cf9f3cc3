"""Reads from the gateway's own S3 listener, as any client does.

So a request of the admin process has the authorization, the decryption, the limits and the log of every other one, and
a worker keeps what it reads from being reclaimed.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import h11

READ_BYTES = 256 * 1024
CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 60.0
"""Seconds without a byte of an answer."""
MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
"""A page of a listing has at most 1000 keys of 3 KiB each, as they are encoded."""


class ConnectionFailed(Exception):
    """The S3 listener cannot be reached, or ended an answer early. The message is for the user."""


class Answer:
    """Status, headers in lower case, and the body, which is read once."""

    def __init__(self, connection: S3Connection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body. Raises ConnectionFailed when it ends early."""
        while piece := await self._connection.next_piece():
            yield piece

    async def document(self) -> bytes:
        """Return the whole body. Raises ConnectionFailed also for one that is too long."""
        parts, size = [], 0
        async for piece in self.pieces():
            parts.append(piece)
            size += len(piece)
            if size > MAX_DOCUMENT_BYTES:
                raise ConnectionFailed("the answer is too long")
        return b"".join(parts)


class S3Connection:
    """One connection, opened when it is needed, and again after a failure. One request at a time."""

    def __init__(self, endpoint: str, certificate: Path | None = None) -> None:
        """`endpoint` is the listener's URL; `certificate` is the file of its own chain, if it speaks TLS."""
        url = urlsplit(endpoint)
        self._host, self._port = url.hostname or "127.0.0.1", url.port or 9000
        self._authority = url.netloc
        self._certificate = certificate if url.scheme == "https" else None
        self._is_tls = url.scheme == "https"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._http = h11.Connection(h11.CLIENT)

    async def request(self, method: str, target: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Send a request without a body and return its answer. Raises ConnectionFailed."""
        await self._make_ready()
        fields = [("host", self._authority), *(headers or {}).items()]
        try:
            await self._send(h11.Request(method=method, target=target, headers=fields))
            while not isinstance(event := await self._next_event(), h11.Response):
                if isinstance(event, h11.ConnectionClosed):
                    raise ConnectionFailed("the S3 listener closed the connection")
        except (OSError, h11.ProtocolError, TimeoutError) as error:
            self.close()
            raise ConnectionFailed(_describe(error)) from error
        return Answer(
            self, event.status_code, {name.decode(): value.decode("latin-1") for name, value in event.headers}
        )

    async def next_piece(self) -> bytes:
        """Return the next bytes of the body; empty at its end. Raises ConnectionFailed."""
        try:
            while not isinstance(event := await self._next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Data):
                    return bytes(event.data)
                if isinstance(event, h11.ConnectionClosed):
                    raise ConnectionFailed("the S3 listener closed the connection")
        except (OSError, h11.ProtocolError, TimeoutError) as error:
            self.close()
            raise ConnectionFailed(_describe(error)) from error
        return b""

    def close(self) -> None:
        """Close the connection, also in the middle of an answer."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _make_ready(self) -> None:
        if self._streams is not None and (self._http.our_state, self._http.their_state) == (h11.DONE, h11.DONE):
            self._http.start_next_cycle()
            return
        self.close()
        self._http = h11.Connection(h11.CLIENT)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                self._streams = await asyncio.open_connection(
                    self._host, self._port, ssl=_trust(self._certificate) if self._is_tls else None, limit=READ_BYTES
                )
        except (OSError, TimeoutError) as error:
            raise ConnectionFailed(_describe(error)) from error

    async def _send(self, request: h11.Request) -> None:
        assert self._streams is not None
        head = self._http.send(request)
        end = self._http.send(h11.EndOfMessage())
        self._streams[1].write((head or b"") + (end or b""))
        await self._streams[1].drain()

    async def _next_event(self) -> h11.Event | type[h11.NEED_DATA | h11.PAUSED]:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._streams is None:
                raise ConnectionFailed("the connection is closed")
            async with asyncio.timeout(SILENCE_SECONDS):
                self._http.receive_data(await self._streams[0].read(READ_BYTES))
        return event


def _trust(certificate: Path | None) -> ssl.SSLContext:
    """Return what trusts the listener's own certificate, under any name: the connection is to this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return context


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the S3 listener does not answer"
    return f"the S3 listener cannot be reached ({type(error).__name__})"
