"""What a selection has: its objects' sizes and bytes, as S3 answers the caller."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import unquote
from xml.etree import ElementTree

from sluice_s3.app.admin.archives.s3_connection import Answer, ConnectionFailed, S3Connection

NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
ERROR = re.compile(rb"<Code>([^<]{1,100})</Code>(?:<Message>([^<]{0,500}))?")


class Sign(Protocol):
    """Signs requests with the keys of the caller's session."""

    def __call__(self, method: str, bucket: str, key: str | None, query: Mapping[str, str]) -> str:
        """Return path and query of a presigned URL."""
        ...


class Found(NamedTuple):
    """An object of a listing."""

    key: str
    size: int


class Refused(Exception):
    """S3 answered with an error; the message is for the user."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ObjectSource:
    """Reads the objects of one bucket, one request at a time."""

    def __init__(self, connection: S3Connection, sign: Sign, bucket: str) -> None:
        self._connection = connection
        self._sign = sign
        self._bucket = bucket

    async def list(self, prefix: str) -> AsyncIterator[Found]:
        """Yield the objects below a prefix, in order of their keys. Raises Refused, ConnectionFailed."""
        query = {"list-type": "2", "encoding-type": "url", "prefix": prefix}
        while True:
            answer = await self._request("GET", None, query)
            page = _parse(await answer.document())
            for one in page.iter(f"{NAMESPACE}Contents"):
                yield Found(unquote(_text(one, "Key")), int(_text(one, "Size") or 0))
            token = _text(page, "NextContinuationToken")
            if not token:
                return
            query["continuation-token"] = token

    async def size(self, key: str) -> int:
        """Return the bytes of an object. Raises Refused, ConnectionFailed."""
        answer = await self._request("HEAD", key, {})
        await answer.document()
        return int(answer.headers.get("content-length", 0))

    async def open(self, key: str, offset: int = 0, etag: str = "") -> Answer:
        """Return the answer with an object's bytes, from an offset of the version with that ETag on.

        Raises Refused, ConnectionFailed.
        """
        headers = {"range": f"bytes={offset}-", "if-match": etag} if offset else {}
        return await self._request("GET", key, {}, headers)

    async def _request(
        self, method: str, key: str | None, query: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Answer:
        answer = await self._connection.request(method, self._sign(method, self._bucket, key, query), headers)
        if answer.status in (200, 206):
            return answer
        raise _refusal(answer.status, await answer.document())


def _parse(document: bytes) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(document)  # noqa: S314 - our own listener wrote it
    except ElementTree.ParseError as error:
        raise ConnectionFailed("the S3 listener's listing cannot be read") from error


def _text(element: ElementTree.Element, name: str) -> str:
    return element.findtext(f"{NAMESPACE}{name}") or ""


def _refusal(status: int, document: bytes) -> Refused:
    found = ERROR.search(document)
    if found is None:
        return Refused(status, {403: "AccessDenied", 404: "NoSuchKey", 412: "it changed"}.get(status, f"HTTP {status}"))
    code, message = found[1].decode(errors="replace"), (found[2] or b"").decode(errors="replace")
    return Refused(status, f"{code}: {message}" if message else code)
