"""Single S3 calls outside the measured loop, with the answer's body."""

from __future__ import annotations

import http.client
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

from sluice_s3.loadtests.clients.signing import Signer

READY_SECONDS = 60.0


class S3CallError(Exception):
    """The endpoint answered with an error, or not at all."""


class Answer(NamedTuple):
    """A complete answer."""

    status: int
    server: str
    body: bytes


class Calls:
    """Blocking calls to one endpoint."""

    def __init__(self, address: tuple[str, int], signer: Signer, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._address = address
        self._signer = signer

    def ask(self, method: str, path: str, query: str = "", body: bytes = b"") -> Answer:
        """Send one request on a connection of its own.

        Raises S3CallError for a status of 300 and over, or no answer.
        """
        connection = http.client.HTTPConnection(*self._address, timeout=60)
        head = self._signer.head(method, path, query, len(body) if method in ("PUT", "POST") else None)
        try:
            connection.connect()
            if self._tls is not None:
                connection.sock = self._tls.wrap_socket(connection.sock, server_hostname=self._address[0])
            connection.sock.sendall(head + body)
            response = http.client.HTTPResponse(connection.sock, method=method)
            response.begin()
            answer = Answer(response.status, response.getheader("server", ""), response.read())
        except (OSError, http.client.HTTPException) as error:
            raise S3CallError(f"{method} {path}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise S3CallError(f"{method} {path}: {answer.status} {answer.body[:300].decode(errors='replace')}")
        return answer

    def wait_ready(self, has_failed: Callable[[], object] = lambda: False) -> str:
        """Wait until the endpoint lists its buckets. Return its `Server` header.

        Raises S3CallError after a minute, or when its process `has_failed`.
        """
        deadline = time.monotonic() + READY_SECONDS
        while True:
            try:
                return self.ask("GET", "/").server
            except S3CallError:
                if has_failed() or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def keys(self, bucket: str) -> Iterator[str]:
        """Return all keys of a bucket (only keys that need no escape in XML)."""
        after = ""
        while True:
            start = f"&start-after={quote(after, safe='')}" if after else ""
            page = self.ask("GET", f"/{bucket}", f"list-type=2&max-keys=1000{start}").body.decode()
            found = re.findall(r"<Key>([^<]*)</Key>", page)
            yield from found
            if not found or "<IsTruncated>true" not in page:
                return
            after = found[-1]

    def remove_bucket(self, bucket: str) -> None:
        """Remove a bucket that may not exist."""
        with suppress(S3CallError):
            self.ask("DELETE", f"/{bucket}")
