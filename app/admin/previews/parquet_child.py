"""Reads the head of a Parquet object, in a process of its own.

The file may be anybody's: a fault of its reader ends this process only, whose memory and time are bounded. It reads the
presigned URL on its standard input and prints JSON.
"""

from __future__ import annotations

import http.client
import io
import resource
import ssl
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

MEMORY_BYTES = 2 * 1024**3
CPU_SECONDS = 10
MAX_READ_BYTES = 64 * 1024 * 1024
"""Bytes that are read of the object."""
READ_AHEAD_BYTES = 128 * 1024
MAX_ROWS = 100
MAX_COLUMNS = 100
MAX_CELL = 200
"""Characters of a cell."""
SILENCE_SECONDS = 15


class PreviewFailed(Exception):
    """There is no preview; the message is for the user."""


class RangeFile(io.RawIOBase):
    """An object as a file, read by ranges."""

    def __init__(self, url: str, certificate: Path | None) -> None:
        """Find its size. Raises PreviewFailed."""
        parts = urlsplit(url)
        self._target = f"{parts.path}?{parts.query}"
        host, port = parts.hostname or "", parts.port
        if certificate is None:
            self._http = http.client.HTTPConnection(host, port, timeout=SILENCE_SECONDS)
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False  # it is this machine, and this certificate only
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(certificate)
            self._http = http.client.HTTPSConnection(host, port, timeout=SILENCE_SECONDS, context=context)
        self._position = self._read_bytes = 0
        self._etag = ""
        self._kept = (0, b"")
        self._size = 0
        self._fetch(0, 4)

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move the position."""
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def size(self) -> int:
        """Return the bytes of the object."""
        return self._size

    def read(self, size: int = -1) -> bytes:
        """Return bytes from the position on. Raises PreviewFailed."""
        left = max(self._size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        start, kept = self._kept
        if not start <= self._position <= self._position + wanted <= start + len(kept):
            length = min(max(wanted, READ_AHEAD_BYTES), left)
            self._kept = start, kept = self._position, self._fetch(self._position, length)
        found = kept[self._position - start :][:wanted]
        self._position += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer. Raises PreviewFailed."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _fetch(self, start: int, length: int) -> bytes:
        if not length:
            return b""
        self._read_bytes += length
        if self._read_bytes > MAX_READ_BYTES:
            raise PreviewFailed(
                f"A preview reads at most {MAX_READ_BYTES >> 20} MiB of an object, and this needs more."
            )
        headers = {"range": f"bytes={start}-{start + length - 1}"}
        if self._etag:
            headers["if-match"] = self._etag
        self._http.request("GET", self._target, headers=headers)
        answer = self._http.getresponse()
        body = answer.read(length)
        answer.read()
        if answer.status != 206:
            raise PreviewFailed(_refusal(answer.status))
        self._etag = answer.headers.get("etag", "")
        self._size = int(answer.headers.get("content-range", "/0").rpartition("/")[2])
        return body


def _refusal(status: int) -> str:
    return {
        403: "You may not read this object.",
        404: "There is no such object.",
        412: "The object changed while it was read: try again.",
        416: "The object is empty.",
    }.get(status, f"S3 answered {status}.")


def read_head(file: RangeFile) -> dict[str, Any]:
    """Return columns, the number of rows and the first rows. Raises PreviewFailed."""
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(file, buffer_size=READ_AHEAD_BYTES, pre_buffer=False)
        names = table.schema_arrow.names[:MAX_COLUMNS]
        fields = [table.schema_arrow.field(index) for index in range(len(names))]
        rows: list[list[str | None]] = []
        for batch in table.iter_batches(MAX_ROWS, row_groups=list(range(min(table.num_row_groups, 1))), columns=names):
            rows = [list(row) for row in zip(*(map(_cell, column) for column in batch.columns), strict=True)]
            break
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error.__cause__, PreviewFailed):
            raise error.__cause__ from None
        raise PreviewFailed(f"This is no Parquet file that can be read: {str(error)[:200]}") from error
    return {
        "rows": table.metadata.num_rows,
        "row_groups": table.num_row_groups,
        "columns": [{"name": field.name[:MAX_CELL], "type": str(field.type)[:MAX_CELL]} for field in fields],
        "hidden_columns": len(table.schema_arrow.names) - len(names),
        "head": rows,
    }


def _cell(value: Any) -> str | None:
    found = value.as_py()
    if found is None:
        return None
    text = found.hex() if isinstance(found, bytes) else str(found)
    return text if len(text) <= MAX_CELL else text[:MAX_CELL] + "…"


def main(lines: Iterable[str]) -> dict[str, Any]:
    """Return the preview, or why there is none, for a URL and perhaps the certificate's file."""
    url, certificate = (line.rstrip("\n") for line in lines)
    try:
        return read_head(RangeFile(url, Path(certificate) if certificate else None))
    except PreviewFailed as error:
        return {"error": str(error)}
    except (OSError, http.client.HTTPException, MemoryError) as error:
        return {"error": f"The object cannot be read ({type(error).__name__})."}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout.buffer.write(orjson.dumps(main(sys.stdin)))
