"""Messages as POST requests to a URL: accepted when the answer is 2xx.

Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from urllib.parse import unquote, urlsplit

import h11

from sluice_s3.app import __version__
from sluice_s3.app.index.notifications.rows import Message
from sluice_s3.app.jobs.notifications.targets.base import MessageRefused, Target, TargetError
from sluice_s3.app.settings import NotifyTarget

READ = 64 * 1024
MOST = 1024**2
"""Bytes of an answer that are read; a longer one is an error."""

OF_TARGET = frozenset([401, 402, 403, 404, 405, 407, 408, 410, 421, 423, 425, 426, 429, 451])
"""Statuses that concern the URL, its credentials or its load, not the message."""


class _Connection:
    """One connection, reusable for several requests."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)

    async def post(self, path: str, headers: list[tuple[str, str]], body: bytes) -> int:
        """Send a request, read the whole answer and return its status.

        Raises OSError, h11.ProtocolError.
        """
        request = h11.Request(method="POST", target=path, headers=headers)
        parts = (self._http.send(request), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        await self._writer.drain()
        status = read = 0
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(READ))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                read += len(event.data)
                if read > MOST:
                    raise ConnectionError("the answer is too long")
            elif isinstance(event, h11.EndOfMessage):
                return status
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionError("closed before the answer")

    def is_free(self) -> bool:
        """Return whether it can send another request, after preparing it for that."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return not self._reader.at_eof()

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


class Webhook:
    """See `Target`."""

    def __init__(self, settings: NotifyTarget) -> None:
        url = urlsplit(settings.url.get_secret_value())
        tls = url.scheme == "https"
        self._host = url.hostname or ""
        self._port = url.port or (443 if tls else 80)
        self._tls = ssl.create_default_context() if tls else None
        self._path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._timeout = settings.timeout
        self._headers = [
            ("host", url.netloc.rpartition("@")[2]),
            ("user-agent", f"sluice/{__version__}"),
            ("content-type", "application/json"),
        ]
        if settings.token is not None:
            self._headers.append(("authorization", f"Bearer {settings.token.get_secret_value()}"))
        elif url.username is not None:
            self._headers.append(("authorization", _basic(url.username, url.password or "")))
        self._idle: list[_Connection] = []

    async def send(self, message: Message) -> None:
        """See `Target.send`."""
        body = message.message.encode()
        headers = [*self._headers, ("content-length", str(len(body)))]
        async with asyncio.timeout(self._timeout):
            status = await self._post(headers, body)
        if 200 <= status < 300:
            return
        kind = MessageRefused if 400 <= status < 500 and status not in OF_TARGET else TargetError
        raise kind(f"it answered {status}")

    async def _post(self, headers: list[tuple[str, str]], body: bytes) -> int:
        while True:
            kept = self._idle.pop() if self._idle else None
            connection = kept or _Connection(*await asyncio.open_connection(self._host, self._port, ssl=self._tls))
            try:
                status = await connection.post(self._path, headers, body)
            except (OSError, h11.ProtocolError):
                connection.close()
                if kept is None:
                    raise
                continue  # the server had closed it meanwhile
            except BaseException:
                connection.close()
                raise
            if connection.is_free():
                self._idle.append(connection)
            else:
                connection.close()
            return status

    async def close(self) -> None:
        """See `Target.close`."""
        while self._idle:
            self._idle.pop().close()


def _basic(user: str, password: str) -> str:
    """Return the credentials of a URL in the form of RFC 7617."""
    return "Basic " + b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()


def open_target(settings: NotifyTarget) -> Target:
    """Open the webhook of these settings."""
    return Webhook(settings)
