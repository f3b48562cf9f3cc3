"""Archives of what an S3 listener answers, which here is a script."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pytest

from sluice_s3.app.admin.archives import archive as archives
from sluice_s3.app.admin.archives.archive import Archive, Selection, TooLarge, measure
from sluice_s3.app.admin.archives.s3_connection import S3Connection
from sluice_s3.app.admin.archives.source import ObjectSource

LISTING = '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}</ListBucketResult>'


class Listener:
    """Objects by their keys, and what goes wrong with them."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.objects = dict(objects)
        self.cut: dict[str, int] = {}
        """Bytes of an object's first answer before its connection breaks."""
        self.after_cut: Callable[[], None] = lambda: None
        self.requests: list[tuple[str, str, str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head.decode(), writer)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: str, writer: asyncio.StreamWriter) -> None:
        method, target, _ = head.split("\r\n")[0].split(" ")
        url = urlsplit(target)
        key = unquote(url.path.removeprefix("/bucket").removeprefix("/"))
        found = re.search("range: bytes=([0-9]+)-", head)
        self.requests.append((method, key, found[1] if found else ""))
        if not key:
            await self._list(parse_qs(url.query), writer)
            return
        body = self.objects.get(key)
        wanted = re.search('if-match: ("[^"]*")', head)
        if body is None or (wanted and wanted[1] != _etag(body)):
            await _send(writer, "404 Not Found" if body is None else "412 Precondition Failed", b"")
            return
        start = int(found[1]) if found else 0
        fields = f"etag: {_etag(body)}\r\nlast-modified: Mon, 23 Nov 2026 12:00:00 GMT\r\n"
        if method == "HEAD":
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode())
            return
        if (cut := self.cut.pop(key, None)) is not None:
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode() + body[:cut])
            await writer.drain()
            writer.close()
            self.after_cut()
            return
        await _send(writer, "206 Partial Content" if start else "200 OK", body[start:], fields)

    async def _list(self, query: Mapping[str, list[str]], writer: asyncio.StreamWriter) -> None:
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = sorted(key for key in self.objects if key.startswith(prefix) and key > after)
        page = "".join(
            f"<Contents><Key>{quote(key)}</Key><Size>{len(self.objects[key])}</Size></Contents>" for key in keys[:2]
        )
        if len(keys) > 2:
            page += f"<NextContinuationToken>{keys[1]}</NextContinuationToken>"
        await _send(writer, "200 OK", LISTING.format(page).encode())


def _etag(body: bytes) -> str:
    return f'"{len(body)}-{body[:1].hex()}"'


async def _send(writer: asyncio.StreamWriter, status: str, body: bytes, fields: str = "") -> None:
    writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{fields}\r\n".encode() + body)
    await writer.drain()


def _sign(method: str, bucket: str, key: str | None, query: Mapping[str, str]) -> str:
    text = "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    return f"/{bucket}{'' if key is None else '/' + quote(key, safe='')}?{text}"


@asynccontextmanager
async def source_of(listener: Listener) -> AsyncIterator[ObjectSource]:
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    connection = S3Connection(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield ObjectSource(connection, _sign, "bucket")
    finally:
        connection.close()
        server.close()
        await asyncio.sleep(0)


async def unpacked(listener: Listener, selection: Selection) -> dict[str, bytes]:
    async with source_of(listener) as source:
        content = b"".join([piece async for piece in Archive(source, selection).stream()])
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


ALL = Selection((), ("",), "")


async def test_a_folder_comes_whole() -> None:
    objects = {"a/1.txt": b"one", "a/2.jpg": bytes(300_000), "a/b/3": b"", "a/empty/": b"", "b/no": b"x"}
    found = await unpacked(Listener(objects), Selection(("b/no",), ("a/",), "a/"))
    assert found == {"b/no": b"x", "1.txt": b"one", "2.jpg": bytes(300_000), "b/3": b"", "empty/": b""}


async def test_what_fails_is_named_and_the_rest_comes() -> None:
    listener = Listener({"good": b"1"})
    found = await unpacked(listener, Selection(("gone\n", "good"), (), ""))
    assert found["good"] == b"1"
    assert "\n\ngone\N{REPLACEMENT CHARACTER}: NoSuchKey\n" in found["ERRORS.txt"].decode()


async def test_a_broken_connection_is_taken_up_in_the_middle() -> None:
    body = bytes(range(256)) * 2000
    listener = Listener({"large": body})
    listener.cut["large"] = 100_000
    assert await unpacked(listener, ALL) == {"large": body}
    assert 0 < int(listener.requests[-1][2]) <= 100_000


async def test_an_object_that_changes_in_the_middle_is_left_out_and_named() -> None:
    listener = Listener({"large": bytes(500_000), "other": b"1"})
    listener.cut["large"] = 100_000
    listener.after_cut = lambda: listener.objects.update(large=b"new")
    found = await unpacked(listener, ALL)
    assert found.keys() == {"other", "ERRORS.txt"}
    assert b"large: left out, as it failed in the middle: it changed" in found["ERRORS.txt"]


async def test_a_listener_that_is_away_ends_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "RETRY_SECONDS", (0.0, 0.0))
    archive = Archive(ObjectSource(S3Connection("http://127.0.0.1:1"), _sign, "bucket"), Selection(("k",), ("p/",), ""))
    content = b"".join([piece async for piece in archive.stream()])
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        text = found.read("ERRORS.txt").decode()
    assert "\nk: the S3 listener cannot be reached" in text
    assert "\nwhat follows of the listing: the S3 listener cannot be reached" in text


async def test_cost_is_counted_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener({f"d/{number}": bytes(number) for number in range(5)})
    async with source_of(listener) as source:
        assert await measure(source, Selection(("d/4", "none"), ("d/",), "")) == (6, 14, 1)
        monkeypatch.setattr(archives, "MAX_OBJECTS", 3)
        with pytest.raises(TooLarge, match="at most 3 objects"):
            await measure(source, ALL)
        content = b"".join([piece async for piece in Archive(source, ALL).stream()])
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        assert len(found.namelist()) == 4
        assert b"what follows: An archive has at most 3" in found.read("ERRORS.txt")
