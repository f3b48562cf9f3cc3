"""The operations of scenarios: put, get, stat, delete and list objects at an S3 endpoint."""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol
from urllib.parse import quote

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.http import Connection, ConnectionFailed, Response
from sluice_s3.loadtests.payload import pieces

PART = 100 * 1000**2
"""Bytes of a part, as in the first published measurement."""
AT_ONCE = 1000**3
"""A longer object is sent in parts."""
PAGE_KEYS = 1000
OWNERSHIP_MARKER = ".sluice-bench"
"""The object that marks a bucket or directory as created by a load test.

A marked one may be removed with all its content.
"""
NOT_OURS = "{} is there already and was not made by a load test: name another, or give a --prefix to work below"
NO_BUCKET = "there is no bucket {}: --prefix works in one that is there"
LOCATION = "<CreateBucketConfiguration><LocationConstraint>{}</LocationConstraint></CreateBucketConfiguration>"
MAX_ATTEMPTS = 20


class OperationResult(NamedTuple):
    """The result of one operation.

    Times are in seconds. `ttfb` is None if there was no first byte, or several. `error` is empty on success. `retries`
    counts requests that were sent again on a new connection.
    """

    total: float
    ttfb: float | None = None
    bytes: int = 0
    status: int = 200
    error: str = ""
    phases: str = ""
    retries: int = 0


class StorageClient(Protocol):
    """One client's access to its objects.

    Methods never raise for a failed operation: see `OperationResult.error`.
    """

    def put(self, key: str, size: int) -> OperationResult:
        """Write an object."""
        ...

    def get(self, key: str, size: int) -> OperationResult:
        """Read an object."""
        ...

    def stat(self, key: str) -> OperationResult:
        """Read an object's size and times only."""
        ...

    def delete(self, key: str) -> OperationResult:
        """Delete an object."""
        ...

    def list(self, prefix: str, after: str, count: int) -> OperationResult:
        """List a page of keys."""
        ...

    def prepare(self) -> str:
        """Create and mark the bucket if it is missing.

        Returns why it cannot, or an empty string.
        """

    def sweep(self) -> str:
        """Remove the bucket with all its content, if it has the mark.

        Returns why it cannot, or an empty string.
        """

    def open(self) -> None:
        """Connect in advance, so that the first operation need not."""

    def close(self) -> None:
        """Close the connection."""
        ...


class S3Client:
    """The objects of one bucket, by a connection of its own."""

    def __init__(self, endpoint: Endpoint, bucket: str, root: str | None = None) -> None:
        """`root` is what all keys begin with in a bucket that is not the test's; None: the bucket is."""
        of_bucket = endpoint.of_bucket(bucket)
        self._endpoint, self._name, self._shared = endpoint, bucket, root is not None
        self._wire = Connection(of_bucket or endpoint)
        self._before = "" if of_bucket else f"/{bucket}"
        self._bucket = self._before or "/"
        self._root = root or ""

    def put(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        if size > AT_ONCE:
            return self._put_parts(self._path(key), size)
        return self._ask("PUT", self._path(key), size=size, sent=True)

    def get(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        done = self._ask("GET", self._path(key))
        if not done.error and done.bytes != size:
            return done._replace(error=f"wrong length: {done.bytes} bytes instead of {size}")
        return done

    def stat(self, key: str) -> OperationResult:
        """See `StorageClient`."""
        return self._ask("HEAD", self._path(key))

    def delete(self, key: str) -> OperationResult:
        """See `StorageClient`."""
        return self._ask("DELETE", self._path(key))

    def list(self, prefix: str, after: str, count: int) -> OperationResult:
        """See `StorageClient`."""
        return self._ask("GET", self._bucket, _list_query(self._root + prefix, after and self._root + after, count))

    def prepare(self) -> str:
        """See `StorageClient`."""
        if self._shared:
            there = self._ask("GET", self._bucket, _list_query(self._root, "", 1))
            return NO_BUCKET.format(self._name) if there.status == 404 else there.error
        for _ in range(MAX_ATTEMPTS):
            if not self.stat(OWNERSHIP_MARKER).error:
                return ""
            there = self._ask("GET", self._bucket, "list-type=2&max-keys=1")
            if there.status == 404:
                made = self._make_bucket()
                if made.status == 200:
                    return self.put(OWNERSHIP_MARKER, 1).error
                if made.status != 409:
                    return made.error
            elif there.error:
                return there.error
            time.sleep(0.1)  # another process may just have created it
        return NOT_OURS.format(self._name)

    def _make_bucket(self) -> OperationResult:
        """Make the bucket where the endpoint is; AWS wants regions but one named."""
        made = self._ask("PUT", self._bucket)
        if "LocationConstraint" not in made.error:
            return made
        body = LOCATION.format(self._endpoint.region).encode()
        answer = self._wire.ask("PUT", self._bucket, "", lambda: [memoryview(body)], len(body))
        return OperationResult(answer.total, answer.ttfb, 0, answer.status, answer.problem)

    def sweep(self) -> str:
        """See `StorageClient`."""
        try:
            if self._shared:
                return self._sweep_root()
            if self.stat(OWNERSHIP_MARKER).error:
                there = self._ask("GET", self._bucket, "list-type=2&max-keys=1")
                return "" if there.status == 404 else there.error or NOT_OURS.format(self._name)
            for page in self._pages(""):
                problem = self._delete_all([key for key in page if key != OWNERSHIP_MARKER])
                if problem:
                    return problem
            self.delete(OWNERSHIP_MARKER)
            answer = self._wire.ask("DELETE", self._bucket)
        except ConnectionFailed as error:
            return str(error)
        return "" if answer.status in (204, 404) else answer.problem

    def _sweep_root(self) -> str:
        """Delete the keys below the root, and nothing else even if the endpoint lists it."""
        for page in self._pages(self._root):
            foreign = next((key for key in page if not key.startswith(self._root)), "")
            if foreign or not self._root:
                return f"{self._name}: the listing of {self._root!r} has {foreign!r}, which is not the test's"
            problem = self._delete_all([key.removeprefix(self._root) for key in page])
            if problem:
                return problem
        return ""

    def open(self) -> None:
        """See `StorageClient`."""
        with suppress(OSError):  # the first operation reports the error
            self._wire.open()

    def close(self) -> None:
        """See `StorageClient`."""
        self._wire.close()

    def _path(self, key: str) -> str:
        return f"{self._before}/{quote(self._root + key, safe='/~')}"

    def _ask(self, method: str, path: str, query: str = "", size: int = 0, *, sent: bool = False) -> OperationResult:
        try:
            answer = self._wire.ask(method, path, query, (lambda: pieces(size)) if sent else None, size)
        except ConnectionFailed as error:
            lost = error.answer
            return OperationResult(
                lost.total, lost.ttfb or None, 0, lost.status, f"no answer: {error}"[:300], "", lost.retries
            )
        moved = size if sent else answer.received
        error_text = answer.problem[:300]
        moved = 0 if error_text else moved
        return OperationResult(
            answer.total, answer.ttfb, moved, answer.status, error_text, answer.phases, answer.retries
        )

    def _put_parts(self, path: str, size: int) -> OperationResult:
        begun = time.perf_counter()
        status = 0
        try:
            answer = self._wire.ask("POST", path, "uploads=", keep=True)
            found = re.search(rb"<UploadId>([^<]+)", answer.body)
            etags: list[str] = []
            upload = quote(html.unescape(found[1].decode(errors="replace")), safe="") if found else ""
            for number in range(1, -(-size // PART) + 1):
                if answer.status >= 300:
                    break
                length = min(PART, size - PART * (number - 1))
                query = f"partNumber={number}&uploadId={upload}"
                answer = self._wire.ask("PUT", path, query, lambda length=length: pieces(length), length)  # type: ignore[misc]
                etags.append(_etag(answer))
            if answer.status < 300:
                body = _complete(etags)
                answer = self._wire.ask("POST", path, f"uploadId={upload}", lambda: [memoryview(body)], len(body))
            status, error = answer.status, answer.problem
        except ConnectionFailed as lost:
            error = f"no answer: {lost}"
        return OperationResult(time.perf_counter() - begun, None, 0 if error else size, status, error[:300])

    def _pages(self, prefix: str) -> Iterator[Sequence[str]]:
        after = ""
        while True:
            answer = self._wire.ask("GET", self._bucket, _list_query(prefix, after, PAGE_KEYS), keep=True)
            if answer.status == 404:
                return
            if answer.problem:
                raise ConnectionFailed(answer.problem, answer)
            keys = [
                html.unescape(one) for one in re.findall(r"<Key>([^<]*)</Key>", answer.body.decode(errors="replace"))
            ]
            if not keys or keys[-1] <= after:  # an endpoint that begins again
                return
            yield keys
            after = keys[-1]

    def _delete_all(self, keys: Sequence[str]) -> str:
        return next(filter(None, run_concurrently(self._again, "delete", keys)), "")

    def _again(self) -> S3Client:
        return S3Client(self._endpoint, self._name, self._root if self._shared else None)


def run_concurrently(
    connect: Callable[[], StorageClient],
    verb: str,
    keys: Sequence[str],
    clients: int = 8,
    *more: int,
    done: Callable[[], None] = lambda: None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Apply one operation to many keys by several clients until `stopped`, and call `done` after each key.

    Returns the first error of each client, or an empty string. A client stops at its third error.
    """
    errors = [""] * clients

    def work(number: int) -> None:
        objects, left = connect(), 3
        for key in keys[number::clients]:
            result: OperationResult = getattr(objects, verb)(key, *more)
            done()
            if result.error:
                errors[number], left = errors[number] or result.error, left - 1
            if not left or stopped():
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


def _etag(answer: Response) -> str:
    found = re.search(rb"\r\netag: *([^\r]+)", answer.head, re.IGNORECASE)
    return found[1].decode(errors="replace") if found else ""


def _complete(etags: list[str]) -> bytes:
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{html.escape(etag)}</ETag></Part>"
        for number, etag in enumerate(etags, 1)
    )
    return f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
