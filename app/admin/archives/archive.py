"""Streams a selection of objects as a zip archive, in bounded memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from email.utils import parsedate
from typing import Literal, NamedTuple

from sluice_s3.app.admin.archives.entry_names import EntryNames
from sluice_s3.app.admin.archives.s3_connection import Answer, ConnectionFailed
from sluice_s3.app.admin.archives.source import Found, ObjectSource, Refused
from sluice_s3.app.admin.archives.zip_format import OLDEST, Moment, ZipWriter

MAX_OBJECTS = 100_000
"""Of one archive: its directory is in memory until the end."""
MAX_NAME_BYTES = 16 * 1024 * 1024
"""Bytes of all keys of one archive."""
MAX_ERRORS = 5000
"""Lines of `ERRORS.txt`."""
ERRORS = "ERRORS.txt"
CHUNK_BYTES = 64 * 1024
INLINE_BYTES = 16 * 1024
"""Bytes that are deflated without a thread."""
RETRY_SECONDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Waits before an object is asked for again, as while a gateway restarts."""
PACKED = re.compile(
    r"application/(gzip|java-archive|pdf|vnd\.apache\.parquet|x-7z-compressed|x-bzip2|x-rar-compressed|x-xz|zip|zstd)"
)
"""Content types that are compressed already, beside images, audio and video."""
PACKED_NAMES = re.compile(
    r".*\.(7z|avif|br|bz2|docx|flac|gz|jar|jpe?g|mkv|mov|mp[34]|ogg|parquet|pdf|png|pptx|rar|web[mp]|xlsx|xz|zip|zst)",
    re.DOTALL | re.IGNORECASE,
)


class Selection(NamedTuple):
    """Objects by their keys, and all that is below some prefixes."""

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]
    root: str
    """What the names of the entries leave out at their beginning."""


class TooLarge(Exception):
    """An archive would have too many objects. The message is for the user."""


class Cost(NamedTuple):
    """What an archive has before it is packed."""

    objects: int
    bytes: int
    unreadable: int
    """Keys that are not there, or may not be read."""


async def measure(source: ObjectSource, selection: Selection) -> Cost:
    """Count what a selection has. Raises TooLarge, Refused, ConnectionFailed."""
    objects = size = unreadable = names = 0
    for key in selection.keys:
        try:
            size += await source.size(key)
            objects += 1
        except Refused:
            unreadable += 1
    for prefix in selection.prefixes:
        async for found in source.list(prefix):
            objects += 1
            size += found.size
            names += len(found.key.encode())
            _check(objects, names)
    return Cost(objects, size, unreadable)


def _check(objects: int, names: int) -> None:
    if objects > MAX_OBJECTS or names > MAX_NAME_BYTES:
        raise TooLarge(
            f"An archive has at most {MAX_OBJECTS:,} objects and {MAX_NAME_BYTES >> 20} MiB of names: choose a smaller "
            "folder, or copy it with `aws s3 sync`."
        )


@dataclass
class Progress:
    """How far an archive is. Bytes are those of the objects, before they are packed."""

    objects: int = 0
    """Objects that were read or failed."""
    bytes: int = 0
    failed: int = 0
    state: Literal["waiting", "running", "done", "broken"] = "waiting"
    """`broken`: the client left, or the gateway failed, before its end."""


class Archive:
    """One archive on its way to a client."""

    def __init__(self, source: ObjectSource, selection: Selection, progress: Progress | None = None) -> None:
        self._source = source
        self._progress = progress or Progress()
        self._selection = selection
        self._writer = ZipWriter()
        self._names = EntryNames()
        self._failures: list[str] = []
        self._ready = bytearray()

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the archive. What fails is named in `ERRORS.txt`, its last entry."""
        self._progress.state = "running"
        try:
            async with aclosing(self._pieces()) as pieces:
                async for piece in pieces:
                    yield piece
            self._progress.state = "done"
        finally:
            self.close()

    def close(self) -> None:
        """Call it broken if it is not done, also where nobody read its first piece."""
        if self._progress.state != "done":
            self._progress.state = "broken"

    async def _pieces(self) -> AsyncGenerator[bytes]:
        objects = names = 0
        try:
            async for found in self._objects():
                objects, names = objects + 1, names + len(found.key.encode())
                _check(objects, names)
                async for piece in self._add(found):
                    yield piece
                self._progress.objects = objects
        except TooLarge as error:  # it grew since it was measured
            self._fail("what follows", str(error))
        except (Refused, ConnectionFailed) as error:
            self._fail("what follows of the listing", str(error))
        yield bytes(self._ready) + self._end()

    async def _objects(self) -> AsyncIterator[Found]:
        for key in self._selection.keys:
            yield Found(key, 0)
        for prefix in self._selection.prefixes:
            async for found in self._source.list(prefix):
                yield found

    async def _add(self, found: Found) -> AsyncIterator[bytes]:
        """Yield what an object's entry adds, once there is enough of it."""
        name = self._names.name(found.key.removeprefix(self._selection.root))
        try:
            answer = await self._open(found.key)
        except (Refused, ConnectionFailed) as error:
            self._fail(found.key, str(error))
            return
        size = int(answer.headers.get("content-length", 0))
        moment = _moment(answer)
        if name.endswith("/") and size == 0:
            await answer.document()
            self._ready += self._writer.folder(name, moment)
            return
        if name.endswith("/"):
            name = self._names.name(name + "content")
        self._ready += self._writer.start(name, moment, size, compress=_is_compressible(found.key, answer))
        try:
            async for piece in self._content(found.key, answer, size):
                if len(piece) <= INLINE_BYTES:
                    self._ready += self._writer.data(piece)
                else:
                    self._ready += await asyncio.to_thread(self._writer.data, piece)
                if len(self._ready) >= CHUNK_BYTES:
                    yield self._take()
        except (Refused, ConnectionFailed) as error:
            self._ready += self._writer.abandon()
            self._fail(found.key, f"left out, as it failed in the middle: {error}")
            return
        self._ready += self._writer.end()
        if len(self._ready) >= CHUNK_BYTES:
            yield self._take()

    async def _content(self, key: str, answer: Answer, size: int) -> AsyncIterator[bytes]:
        """Yield an object's bytes; a connection that breaks is taken up again where it broke, in the same version."""
        read, etag = 0, answer.headers.get("etag", "")
        while True:
            try:
                async for piece in answer.pieces():
                    read += len(piece)
                    self._progress.bytes += len(piece)
                    yield piece
            except ConnectionFailed:
                if not etag:
                    raise
            if read >= size:
                return
            answer = await self._open(key, read, etag)

    async def _open(self, key: str, offset: int = 0, etag: str = "") -> Answer:
        """Open an object, patiently while the gateway cannot answer. Raises Refused, ConnectionFailed."""
        for seconds in RETRY_SECONDS:
            try:
                return await self._source.open(key, offset, etag)
            except ConnectionFailed:
                await asyncio.sleep(seconds)
            except Refused as error:
                if error.status not in (500, 503):
                    raise
                await asyncio.sleep(seconds)
        return await self._source.open(key, offset, etag)

    def _take(self) -> bytes:
        taken = bytes(self._ready)
        self._ready.clear()
        return taken

    def _fail(self, what: str, why: str) -> None:
        self._progress.failed += 1
        if len(self._failures) < MAX_ERRORS:
            self._failures.append(f"{_printable(what)}: {_printable(why)}\n")

    def _end(self) -> bytes:
        """Return the list of failures, if there are any, and the directory."""
        if not self._failures:
            return self._writer.finish()
        head = f"{self._progress.failed} failed and are not in this archive, each with the reason:\n\n"
        text = (head + "".join(self._failures)).encode()
        entry = self._writer.start(self._names.name(ERRORS), OLDEST, len(text), compress=True)
        return entry + self._writer.data(text) + self._writer.end() + self._writer.finish()


def _moment(answer: Answer) -> Moment:
    found = parsedate(answer.headers.get("last-modified", ""))
    return OLDEST if found is None else (found[0], found[1], found[2], found[3], found[4], found[5])


def _is_compressible(key: str, answer: Answer) -> bool:
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith(("image/", "audio/", "video/")):
        return kind == "image/svg+xml"
    is_encoded = answer.headers.get("content-encoding", "") not in ("", "identity")
    return not (is_encoded or PACKED.fullmatch(kind) or PACKED_NAMES.fullmatch(key))


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
