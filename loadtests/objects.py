"""What scenarios do: put, get, stat, delete and list objects at an S3 endpoint, and what came of it."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol
from urllib.parse import quote

from loadtests.payload import pieces
from loadtests.wire import Answer, Connection, Endpoint, Lost

PART = 100 * 1000**2
"""Bytes of a part where an object is sent in parts, as the first published measurement had it."""
AT_ONCE = 1000**3
"""A longer object is sent in parts."""
PAGE = 1000
MARK = ".sluice-bench"
"""An object that says that a bucket, or directory, was made by a load test and may be removed with all in it."""
NOT_OURS = "{} is there already and was not made by a load test: name another"
TRIES = 20


class Done(NamedTuple):
    """One operation. Times are seconds; `ttfb` None: there was no first byte, or many. `error` is empty when good."""

    total: float
    ttfb: float | None = None
    bytes: int = 0
    status: int = 200
    error: str = ""
    phases: str = ""


class Objects(Protocol):
    """One client's way to its objects. Methods never raise for what goes wrong there: see `Done.error`."""

    def put(self, key: str, size: int) -> Done: ...

    def get(self, key: str, size: int) -> Done: ...

    def stat(self, key: str) -> Done: ...

    def delete(self, key: str) -> Done: ...

    def list(self, prefix: str, after: str, count: int) -> Done: ...

    def prepare(self) -> str:
        """Make the bucket where there is none, and mark it. Returns why it cannot be, or nothing."""

    def sweep(self) -> str:
        """Remove the bucket with all that is in it, if it has the mark. Returns why it cannot be, or nothing."""

    def open(self) -> None:
        """Connect, where there is something to connect to, so that the first operation need not."""

    def close(self) -> None: ...


class S3Objects:
    """Objects of one bucket, by a connection of its own."""

    def __init__(self, endpoint: Endpoint, bucket: str) -> None:
        self._endpoint = endpoint
        self._wire = Connection(endpoint)
        self._bucket = f"/{bucket}"

    def put(self, key: str, size: int) -> Done:
        if size > AT_ONCE:
            return self._put_parts(self._path(key), size)
        return self._ask("PUT", self._path(key), size=size, sent=True)

    def get(self, key: str, size: int) -> Done:
        done = self._ask("GET", self._path(key))
        if not done.error and done.bytes != size:
            return done._replace(error=f"wrong length: {done.bytes} bytes instead of {size}")
        return done

    def stat(self, key: str) -> Done:
        return self._ask("HEAD", self._path(key))

    def delete(self, key: str) -> Done:
        return self._ask("DELETE", self._path(key))

    def list(self, prefix: str, after: str, count: int) -> Done:
        return self._ask("GET", self._bucket, _list_query(prefix, after, count))

    def prepare(self) -> str:
        for _ in range(TRIES):
            if not self.stat(MARK).error:
                return ""
            there = self._ask("GET", self._bucket, "list-type=2&max-keys=1")
            if there.status == 404:
                made = self._ask("PUT", self._bucket)
                if made.status == 200:
                    return self.put(MARK, 1).error
                if made.status != 409:
                    return made.error
            elif there.error:
                return there.error
            time.sleep(0.1)  # another process may just have made it
        return NOT_OURS.format(self._bucket[1:])

    def sweep(self) -> str:
        try:
            if self.stat(MARK).error:
                there = self._ask("GET", self._bucket, "list-type=2&max-keys=1")
                return "" if there.status == 404 else there.error or NOT_OURS.format(self._bucket[1:])
            for page in self._pages():
                problem = self._delete_all([key for key in page if key != MARK])
                if problem:
                    return problem
            self.delete(MARK)
            answer = self._wire.ask("DELETE", self._bucket)
        except Lost as error:
            return str(error)
        return "" if answer.status in (204, 404) else answer.problem

    def open(self) -> None:
        with suppress(OSError):  # the first operation tells
            self._wire.open()

    def close(self) -> None:
        self._wire.close()

    def _path(self, key: str) -> str:
        return f"{self._bucket}/{quote(key, safe='/~')}"

    def _ask(self, method: str, path: str, query: str = "", size: int = 0, *, sent: bool = False) -> Done:
        try:
            answer = self._wire.ask(method, path, query, (lambda: pieces(size)) if sent else None, size)
        except Lost as error:
            lost = error.answer
            return Done(lost.total, lost.ttfb or None, 0, lost.status, f"no answer: {error}"[:300], "")
        moved = size if sent else answer.received
        error_text = answer.problem[:300]
        return Done(answer.total, answer.ttfb, 0 if error_text else moved, answer.status, error_text, answer.phases)

    def _put_parts(self, path: str, size: int) -> Done:
        begun = time.perf_counter()
        status = 0
        try:
            answer = self._wire.ask("POST", path, "uploads=", keep=True)
            found = re.search(rb"<UploadId>([^<]+)", answer.body)
            etags: list[str] = []
            upload = quote(html.unescape(found[1].decode()), safe="") if found else ""
            for number in range(1, -(-size // PART) + 1):
                if answer.status >= 300:
                    break
                length = min(PART, size - PART * (number - 1))
                query = f"partNumber={number}&uploadId={upload}"
                answer = self._wire.ask("PUT", path, query, lambda length=length: pieces(length), length)  # type: ignore[misc]
                etags.append(_etag(answer))
            if answer.status < 300:
                told = _complete(etags)
                answer = self._wire.ask("POST", path, f"uploadId={upload}", lambda: [memoryview(told)], len(told))
            status, error = answer.status, answer.problem
        except Lost as lost:
            error = f"no answer: {lost}"
        return Done(time.perf_counter() - begun, None, 0 if error else size, status, error[:300])

    def _pages(self) -> Iterator[Sequence[str]]:
        after = ""
        while True:
            answer = self._wire.ask("GET", self._bucket, _list_query("", after, PAGE), keep=True)
            if answer.status == 404:
                return
            if answer.problem:
                raise Lost(answer.problem, answer)
            keys = [html.unescape(one) for one in re.findall(r"<Key>([^<]*)</Key>", answer.body.decode())]
            if not keys:
                return
            yield keys
            after = keys[-1]

    def _delete_all(self, keys: Sequence[str]) -> str:
        return next(filter(None, run_many(lambda: S3Objects(self._endpoint, self._bucket[1:]), "delete", keys)), "")


def run_many(connect: Callable[[], Objects], verb: str, keys: Sequence[str], clients: int = 8, *more: int) -> list[str]:
    """Do one verb with many keys by several clients. Returns the first error of each client, empty where none was.
    A client stops at its third error."""
    errors = [""] * clients

    def work(number: int) -> None:
        objects, left = connect(), 3
        for key in keys[number::clients]:
            done: Done = getattr(objects, verb)(key, *more)
            if done.error:
                errors[number], left = errors[number] or done.error, left - 1
            if not left:
                break
        objects.close()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def _list_query(prefix: str, after: str, count: int) -> str:
    parts = {"list-type": "2", "max-keys": str(count), "prefix": prefix, "start-after": after}
    return "&".join(f"{name}={quote(value, safe='~')}" for name, value in sorted(parts.items()) if value)


def _etag(answer: Answer) -> str:
    found = re.search(rb"\r\netag: *([^\r]+)", answer.head, re.IGNORECASE)
    return found[1].decode() if found else ""


def _complete(etags: list[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{html.escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
