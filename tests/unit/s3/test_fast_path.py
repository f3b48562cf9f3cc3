"""An eager start answers as a task does, byte for byte but for date and request id."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.main import WorkerApp
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.http.connection import Connection
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.shared_memory.counters import Counters
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from sluice_s3.app.store.quotas import NoPeers
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed
from tests.support.raw_http import Request
from tests.support.signing import Key, Way, presign, sign_full
from tests.support.waiting import eventually_async

pytestmark = [pytest.mark.slow, pytest.mark.disk]  # the reads that may not wait (RWF_NOWAIT) are none of tmpfs

HOST = "gateway.test"
WAY = Way(HOST)
ROOT, OTHER = Key("ROOTKEY", "root-secret-key"), Key("OTHERKEY", "other-secret-key")
BODY = bytes(range(256)) * 20
LONG_AGO = "Sun, 06 Nov 1994 08:49:37 GMT"
VARIES = re.compile(
    rb"(?<=\r\ndate: )[^\r]+|(?<=\r\nx-amz-request-id: )\w+|(?<=\r\nx-amz-id-2: )\w+|(?<=Id>)\w+|(?<=<ServerTime>)[^<]+"
)


class Context:
    """What a worker gives its application; remembers what was observed."""

    def __init__(self, shared: Path) -> None:
        self.memory = BodyMemoryBudget(1 << 24)
        self.counters = Counters(shared, 1, create=True)
        self.observed: list[tuple[Any, ...]] = []
        self.quotas = NoPeers()
        self.rates = None
        self.read_caches: dict[str, int] = {}

    def addresses(self) -> dict[str, str]:
        return {"s3": "http://127.0.0.1:9000", "admin": "http://0.0.0.0:9001"}

    def oldest_request(self) -> int:
        return 0

    def cut_requests(self, began: int) -> None:
        raise AssertionError("an SQLite index has no heartbeats")

    def publish_store_state(self, name: str, condition: str, running: int, stuck: int, held: int) -> None:
        assert condition == "up"

    def observe(self, request: Any, status: int, code: str, sent: int, seconds: float) -> None:
        assert seconds > 0
        self.observed.append((request.operation, request.access_key, request.bucket, request.key, status, code, sent))


class Watched:
    """The responder of an application. Notes the responses that needed no task."""

    def __init__(self, app: WorkerApp, answered: list[Response]) -> None:
        self.record = app.gateway.record
        self._app = app
        self._answered = answered

    async def respond(self, request: S3Request) -> Response | None:
        response = await self._app.gateway.respond(request)
        if response is not None and asyncio.current_task() is None:
            self._answered.append(response)
        return response


class Two(NamedTuple):
    """One application behind two listeners, the second of which starts eagerly; and how often that needed no task."""

    app: WorkerApp
    context: Context
    ordinary: int
    fast: int
    answered: list[Response]

    async def ask(self, port: int, data: bytes) -> bytes:
        """Send bytes, say that no more will come, and read until the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        writer.write(data)
        async with asyncio.timeout(20):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length: (\d+)", head)
            bodiless = data.startswith(b"HEAD") or head[9:12] in (b"204", b"304")
            body = b"" if bodiless or length is None else await reader.readexactly(int(length[1]))
        writer.close()
        return head + body

    async def was_observed(self) -> None:
        """Until a request was, which may be a moment behind its answer."""
        for _ in range(20_000):
            if self.context.observed:
                return
            await asyncio.sleep(0.001)
        raise TimeoutError


@asynccontextmanager
async def two(path: Path, **options: Any) -> AsyncIterator[Two]:
    given = {"root_access_key": ROOT.access, "root_secret_key": ROOT.secret, "durability": "relaxed", **options}
    settings = Settings(data=path / "data", domain="virtual.test", **given)
    await asyncio.to_thread(prepare, settings)
    context = Context(path / "counters")
    app = WorkerApp(settings, context)  # type: ignore[arg-type]
    state = HttpState(settings, context.memory)
    answered: list[Response] = []

    watched = Watched(app, answered)
    loop = asyncio.get_running_loop()
    async with app.lifespan():
        await app._index.add_account(Account("other", "other", "", False, 0), *OTHER)
        ordinary = await loop.create_server(lambda: Connection(state, None, app.gateway), "127.0.0.1", 0)
        fast = await loop.create_server(
            lambda: Connection(state, None, watched, starts_eagerly=settings.fast_lane), "127.0.0.1", 0
        )
        ports = [server.sockets[0].getsockname()[1] for server in (ordinary, fast)]
        try:
            yield Two(app, context, *ports, answered)
        finally:
            ordinary.close()
            fast.close()
            for connection in list(state.connections):
                connection.abort()


def signed(method: str, path: str, query: str = "", *fields: tuple[str, str], key: Key = ROOT, **more: Any) -> Request:
    return sign_full(Request(method, path, query, fields, **more), key, WAY).request


Make = Callable[[], Request]
FAST: dict[str, Make] = {
    "GET": lambda: signed("GET", "/bucket/object"),
    "HEAD": lambda: signed("HEAD", "/bucket/object"),
    "GET of nothing": lambda: signed("GET", "/bucket/empty"),
    "HEAD of nothing": lambda: signed("HEAD", "/bucket/empty"),
    "metadata and class": lambda: signed("HEAD", "/bucket/described"),
    "escaped key": lambda: signed("GET", "/bucket/a%20b/%C3%A9"),
    "content-length 0": lambda: signed("GET", "/bucket/object", "", ("content-length", "0")),
    "range": lambda: signed("GET", "/bucket/object", "", ("range", "bytes=5-99")),
    "suffix range": lambda: signed("HEAD", "/bucket/object", "", ("range", "bytes=-7")),
    "range that is none": lambda: signed("GET", "/bucket/object", "", ("range", "lines=5-9")),
    "range past the end": lambda: signed("GET", "/bucket/object", "", ("range", "bytes=99999-")),
    "If-None-Match": lambda: signed("GET", "/bucket/object", "", ("if-none-match", "*")),
    "HEAD If-None-Match": lambda: signed("HEAD", "/bucket/object", "", ("if-none-match", "*")),
    "If-Match fails": lambda: signed("GET", "/bucket/object", "", ("if-match", '"other"')),
    "HEAD If-Match fails": lambda: signed("HEAD", "/bucket/object", "", ("if-match", '"other"')),
    "modified since": lambda: signed("GET", "/bucket/object", "", ("if-modified-since", LONG_AGO)),
    "unmodified": lambda: signed("GET", "/bucket/object", "", ("if-unmodified-since", LONG_AGO)),
    "checksum mode": lambda: signed("GET", "/bucket/object", "", ("x-amz-checksum-mode", "ENABLED")),
    "overrides": lambda: signed("GET", "/bucket/object", "response-content-type=a%2Fb&response-expires=x"),
    "override with a line end": lambda: signed("GET", "/bucket/object", "response-content-type=a%0D%0Ab"),
    "part 1": lambda: signed("GET", "/bucket/object", "partNumber=1"),
    "part 2": lambda: signed("GET", "/bucket/object", "partNumber=2"),
    "part x": lambda: signed("HEAD", "/bucket/object", "partNumber=x"),
    "part and range": lambda: signed("GET", "/bucket/object", "partNumber=1", ("range", "bytes=0-1")),
    "repeated header": lambda: signed("GET", "/bucket/object", "", ("x-amz-meta-a", "1"), ("x-amz-meta-a", "2")),
    "presigned": lambda: presign(Request("GET", "/bucket/object"), ROOT, WAY),
    "presigned with a header": lambda: presign(
        Request("GET", "/bucket/object", "x-amz-checksum-mode=ENABLED"), ROOT, WAY
    ),
    "presigned with a header not built": lambda: presign(
        Request("GET", "/bucket/object", "x-amz-tagging=a"), ROOT, WAY
    ),
    "presigned, expired": lambda: presign(Request("GET", "/bucket/object"), ROOT, Way(HOST, shift=-600)),
    "virtual host": lambda: sign_full(
        Request("GET", "/object", headers=(("host", "bucket.virtual.test"),)), ROOT, Way("bucket.virtual.test")
    ).request,
    "no such key": lambda: signed("GET", "/bucket/nothing"),
    "HEAD of no such key": lambda: signed("HEAD", "/bucket/nothing"),
    "no such bucket": lambda: signed("GET", "/nowhere/object"),
    "no bucket's name": lambda: signed("GET", "/No_Bucket/object"),
    "no bucket": lambda: signed("GET", "//object"),
    "climbing key": lambda: signed("GET", "/bucket/../../object"),
    "long key": lambda: signed("HEAD", "/bucket/" + "k" * 1025),
    "bad escape": lambda: Request("GET", "/bucket/object%zz"),
    "anonymous": lambda: Request("GET", "/bucket/object"),
    "anonymous override": lambda: Request("GET", "/bucket/object", "response-expires=x"),
    "another account": lambda: signed("GET", "/bucket/object", key=OTHER),
    "unknown key": lambda: signed("GET", "/bucket/object", key=Key("NOBODY", "no-secret")),
    "wrong secret": lambda: signed("GET", "/bucket/object", key=Key(ROOT.access, "wrong-secret")),
    "wrong signature": lambda: signed("GET", "/bucket/object").changed("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    "unsigned header": lambda: signed("GET", "/bucket/object").having(("x-amz-meta-a", "b")),
    "malformed authorization": lambda: Request(
        "GET", "/bucket/object", headers=(("authorization", "AWS4-HMAC-SHA256 x"),)
    ),
    "skewed": lambda: sign_full(Request("GET", "/bucket/object"), ROOT, Way(HOST, shift=-3600)).request,
    "other region": lambda: sign_full(Request("GET", "/bucket/object"), ROOT, Way(HOST, region="eu-west-1")).request,
    "expected owner": lambda: signed("GET", "/bucket/object", "", ("x-amz-expected-bucket-owner", "somebody")),
    "half a key": lambda: signed("GET", "/bucket/object", "", ("x-amz-server-side-encryption-customer-key", "x")),
    "streaming payload": lambda: sign_full(
        Request("GET", "/bucket/object"), ROOT, Way(HOST, payload="STREAMING-UNSIGNED-PAYLOAD-TRAILER")
    ).request,
}  # fmt: skip
"""Requests that are answered without a task."""

OTHERS: dict[str, Make] = {
    "large": lambda: signed("GET", "/bucket/large"),
    "part of a large one": lambda: signed("GET", "/bucket/large", "", ("range", "bytes=1-300000")),
    "version id": lambda: signed("GET", "/bucket/object", "versionId=null"),
    "empty version id": lambda: signed("HEAD", "/bucket/object", "versionId="),
    "acl": lambda: signed("GET", "/bucket/object", "acl"),
    "sub-resource not built": lambda: signed("GET", "/bucket/object", "torrent"),
    "listing": lambda: signed("GET", "/bucket", "list-type=2"),
    "buckets": lambda: signed("GET", "/"),
    "HEAD of a bucket": lambda: signed("HEAD", "/bucket"),
    "health": lambda: Request("GET", "/-/health/live"),
    "with a body": lambda: signed("GET", "/bucket/object", body=b"why"),
    "PUT of a large one": lambda: signed("PUT", "/bucket/large", body=BODY * 100),
    "PUT to a sub-resource": lambda: signed("PUT", "/bucket/object", "acl", body=b"x"),
    "PUT of a bucket": lambda: signed("PUT", "/another"),
    "UploadPart": lambda: signed("PUT", "/bucket/object", "partNumber=1&uploadId=none", body=b"x"),
    "copy": lambda: signed("PUT", "/bucket/copy", "", ("x-amz-copy-source", "/bucket/nothing")),
    "DELETE with a body": lambda: signed("DELETE", "/bucket/nothing", body=b"why"),
    "connection: close": lambda: signed("GET", "/bucket/object", "", ("connection", "close")),
    "upgrade": lambda: signed("GET", "/bucket/object", "", ("connection", "upgrade"), ("upgrade", "h2c")),
    "OPTIONS": lambda: Request("OPTIONS", "/bucket/object"),
    "origin": lambda: signed("GET", "/bucket/object", "", ("origin", "http://page.test")),
    "the console": lambda: signed("GET", "/bucket/object", "", ("origin", "http://gateway.test:9001")),
    "a preflight request of the console": lambda: Request(
        "OPTIONS",
        "/bucket/object",
        headers=(("origin", "http://gateway.test:9001"), ("access-control-request-method", "PUT")),
    ),
    "a browser": lambda: Request("GET", "/", headers=(("accept", "text/html"),)),
    "origin and a bad escape": lambda: Request("GET", "/bucket/object", "x=%zz", (("origin", "http://page.test"),)),
}
"""Requests that may have to wait, or are no request to an object."""


CHANGES: dict[str, Make] = {
    "PUT": lambda: signed("PUT", "/bucket/object", body=BODY),
    "PUT of nothing": lambda: signed("PUT", "/bucket/empty"),
    "PUT at the limit": lambda: signed("PUT", "/bucket/medium", body=bytes(100 * 1024)),
    "PUT with metadata": lambda: signed(
        "PUT", "/bucket/new", "", ("x-amz-meta-a", "b"), ("content-type", "text/x"), body=b"body"
    ),
    "PUT of a class": lambda: signed("PUT", "/bucket/new", "", ("x-amz-storage-class", "STANDARD_IA"), body=b"body"),
    "PUT with a checksum": lambda: signed("PUT", "/bucket/new", "", ("x-amz-checksum-crc32", "jNyy8Q=="), body=b"x"),
    "PUT with a wrong checksum": lambda: signed(
        "PUT", "/bucket/new", "", ("x-amz-checksum-crc32", "AAAAAA=="), body=b"hello world"
    ),
    "PUT with a wrong MD5": lambda: signed(
        "PUT", "/bucket/new", "", ("content-md5", "1B2M2Y8AsgTpgAmY7PhCfg=="), body=b"hello world"
    ),
    "PUT with another body's hash": lambda: replace(signed("PUT", "/bucket/new", body=b"one"), body=b"two"),
    "PUT if there is none": lambda: signed("PUT", "/bucket/object", "", ("if-none-match", "*"), body=b"x"),
    "PUT if it matches": lambda: signed("PUT", "/bucket/object", "", ("if-match", '"other"'), body=b"x"),
    "PUT if there is one": lambda: signed("PUT", "/bucket/nothing", "", ("if-match", "*"), body=b"x"),
    "PUT with a condition that S3 has not": lambda: signed(
        "PUT", "/bucket/object", "", ("if-none-match", '"e"'), body=b"x"
    ),
    "PUT to no bucket": lambda: signed("PUT", "/nowhere/object", body=b"x"),
    "PUT by another account": lambda: signed("PUT", "/bucket/object", key=OTHER, body=b"x"),
    "PUT by nobody": lambda: Request("PUT", "/bucket/object", body=b"x"),
    "PUT with what is not built": lambda: signed("PUT", "/bucket/object", "", ("x-amz-tagging", "a=b"), body=b"x"),
    "presigned PUT": lambda: presign(Request("PUT", "/bucket/new", body=b"x"), ROOT, WAY),
    "DELETE": lambda: signed("DELETE", "/bucket/described"),
    "DELETE of nothing": lambda: signed("DELETE", "/bucket/nothing"),
    "DELETE of a version": lambda: signed("DELETE", "/bucket/described", "versionId=null"),
    "DELETE of no version": lambda: signed("DELETE", "/bucket/described", "versionId="),
    "DELETE if it matches": lambda: signed("DELETE", "/bucket/object", "", ("if-match", '"other"')),
    "DELETE in no bucket": lambda: signed("DELETE", "/nowhere/object"),
}  # fmt: skip
"""Changes, whose bodies come with their heads."""


def wire(request: Request) -> bytes:
    host = request.header("host")
    return request.wire(HOST) if host is None else request.wire(host)


async def fill(gateway: Two) -> None:
    meta = (("content-type", "text/plain"), ("x-amz-meta-name", "caf\xe9"), ("x-amz-storage-class", "STANDARD_IA"))
    for request in (
        signed("PUT", "/bucket"),
        signed("PUT", "/bucket/object", body=BODY),
        signed("PUT", "/bucket/empty"),
        signed("PUT", "/bucket/described", "", *meta, body=BODY),
        signed("PUT", "/bucket/a%20b/%C3%A9", body=b"escaped"),
        signed("PUT", "/bucket/large", body=BODY * 100),
    ):
        answer = await gateway.ask(gateway.ordinary, wire(request))
        assert answer.startswith(b"HTTP/1.1 200"), answer
    for path in ("/bucket/object", "/bucket/described", "/bucket/a%20b/%C3%A9"):  # into the page cache
        await gateway.ask(gateway.ordinary, wire(signed("GET", path)))


@pytest.mark.parametrize("options", [{}, {"sigv2": "on", "durability": "full"}], ids=["plain", "other-settings"])
async def test_equal_answers(tmp_path: Path, options: dict[str, Any]) -> None:
    async with two(tmp_path, **options) as gateway:
        await fill(gateway)
        for name, make in {**FAST, **CHANGES, **OTHERS}.items():
            data = wire(make())
            answers, observed = [], []
            for port in (gateway.ordinary, gateway.fast):
                if name in CHANGES:
                    await fill(gateway)
                gateway.answered.clear()
                gateway.context.observed.clear()
                answers.append(await gateway.ask(port, data))
                if name != "health":
                    await gateway.was_observed()
                observed += gateway.context.observed
            gateway.context.observed[:] = observed
            assert VARIES.sub(b"?", answers[0]) == VARIES.sub(b"?", answers[1]), name
            assert gateway.answered or name not in FAST, name
            if name != "health":
                first, second = gateway.context.observed
                assert first == second, name


async def test_records_that_must_be_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that waits for a record has the same answer, also when there is none to give."""
    async with two(tmp_path) as gateway:
        await fill(gateway)
        driver = gateway.app._services.store.driver
        monkeypatch.setattr(driver, "try_read", lambda *_: None)
        read, failure = driver.read, None

        async def awaited(*arguments: Any) -> Any:
            await asyncio.sleep(0.001)
            if failure is not None:
                raise failure
            return await read(*arguments)

        monkeypatch.setattr(driver, "read", awaited)
        statuses = set()
        for failure in (None, BlobDamaged("no"), BlobMissing("no"), StoreFailed("no")):
            for name, make in FAST.items():
                data, answers = wire(make()), []
                gateway.context.observed.clear()
                for number, port in enumerate((gateway.ordinary, gateway.fast)):
                    answers.append(await gateway.ask(port, data))
                    await eventually_async(lambda: len(gateway.context.observed) > number)  # noqa: B023
                assert VARIES.sub(b"?", answers[0]) == VARIES.sub(b"?", answers[1]), name
                first, second = gateway.context.observed
                assert first == second, name
                statuses.add((failure is not None, answers[1][9:12]))
        assert {(False, b"200"), (False, b"206"), (True, b"503")} <= statuses


async def test_who_leaves_while_a_record_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with two(tmp_path) as gateway:
        await fill(gateway)
        driver, begun, go = gateway.app._services.store.driver, asyncio.Event(), asyncio.Event()
        monkeypatch.setattr(driver, "try_read", lambda *_: None)
        read = driver.read

        async def late(*arguments: Any) -> Any:
            begun.set()
            await go.wait()
            return await read(*arguments)

        monkeypatch.setattr(driver, "read", late)
        gateway.context.observed.clear()
        _, writer = await asyncio.open_connection("127.0.0.1", gateway.fast)
        writer.write(wire(signed("GET", "/bucket/object")))
        await begun.wait()
        writer.transport.abort()
        await asyncio.sleep(0.01)
        go.set()
        await gateway.was_observed()
        answer = await gateway.ask(gateway.fast, wire(signed("GET", "/bucket/object")))
        assert answer.endswith(BODY)


async def test_equal_statuses_are_many(tmp_path: Path) -> None:
    """The list above is worth something: it covers what a read can be answered with."""
    async with two(tmp_path) as gateway:
        await fill(gateway)
        statuses = {(await gateway.ask(gateway.fast, wire(make())))[9:12] for make in FAST.values()}
        changed = {(await gateway.ask(gateway.fast, wire(make())))[9:12] for make in CHANGES.values()}
    assert changed == {b"200", b"204", b"400", b"403", b"404", b"412", b"501"}
    assert statuses == {b"200", b"206", b"304", b"400", b"403", b"404", b"412", b"416", b"501"}


@pytest.mark.parametrize("waits", [("access_key",), ("bucket", "version"), ("version",)])
async def test_an_index_that_must_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: tuple[str, ...]) -> None:
    """However far the first stretch came, the task goes on from there and gives the same answer."""

    class Waiting:
        def __init__(self, index: Any) -> None:
            self.index = index

        def __getattr__(self, name: str) -> Any:
            read = getattr(self.index, name)
            if name not in waits:
                return read

            async def wait(*arguments: Any) -> Any:
                await asyncio.sleep(0)
                return await read(*arguments)

            return wait

    async with two(tmp_path) as gateway:
        await fill(gateway)
        monkeypatch.setattr("sluice_s3.app.access.lookup_cache.MAX_ENTRIES", 0)
        gateway.app._services.cache._generation = -1
        for name, make in FAST.items():
            data = wire(make())
            ordinary = await gateway.ask(gateway.ordinary, data)
            with monkeypatch.context() as patch:
                patch.setattr(gateway.app._services, "index", Waiting(gateway.app._index))
                patch.setattr(gateway.app._services.cache, "_index", Waiting(gateway.app._index))
                fast = await gateway.ask(gateway.fast, data)
            assert VARIES.sub(b"?", ordinary) == VARIES.sub(b"?", fast), name
        assert not any(response.status in (200, 206) for response in gateway.answered)


async def test_off(tmp_path: Path) -> None:
    async with two(tmp_path, fast_lane=False) as gateway:
        await fill(gateway)
        answer = await gateway.ask(gateway.fast, wire(signed("GET", "/bucket/object")))
        assert answer.endswith(BODY)
        assert gateway.answered == []


async def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    """One read's first request starts eagerly, those behind it wait for their turn."""
    async with two(tmp_path) as gateway:
        await fill(gateway)
        ranges = [f"bytes={number}-{number}" for number in range(20)]
        data = b"".join(wire(signed("GET", "/bucket/object", "", ("range", text))) for text in ranges)
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.fast)
        writer.write(data)
        received = b""
        async with asyncio.timeout(20):
            for _ in ranges:
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 206")
                received += await reader.readexactly(1)
        writer.close()
        assert received == BODY[:20]
        assert len(gateway.answered) < len(ranges)


async def test_a_reader_that_is_behind_is_waited_for(tmp_path: Path) -> None:
    """Past the mark of the write buffer a request waits until the buffer is drained."""
    async with two(tmp_path) as gateway:
        await fill(gateway)
        await gateway.ask(gateway.ordinary, wire(signed("PUT", "/bucket/medium", body=BODY * 40)))
        await gateway.ask(gateway.ordinary, wire(signed("GET", "/bucket/medium")))
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(slow, ("127.0.0.1", gateway.fast))
        request = wire(signed("GET", "/bucket/medium"))
        for _ in range(60):
            await loop.sock_sendall(slow, request)
            await asyncio.sleep(0.005)
        answered = len(gateway.answered)
        assert 0 < answered < 60
        received = 0
        async with asyncio.timeout(20):
            while received < 60 * len(BODY) * 40:
                received += len(await loop.sock_recv(slow, 1 << 20))
        slow.close()


@pytest.mark.parametrize("name", ["PUT", "DELETE"])
async def test_no_change_begins_whose_right_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It is refused, and nothing changes."""
    async with two(tmp_path) as gateway:
        await fill(gateway)
        admit = authorization.authorize_request

        def leave_open(request: S3Request, *arguments: Any) -> None:
            admit(request, *arguments)
            request.authorization_pending = True

        monkeypatch.setattr(authorization, "authorize_request", leave_open)
        change = {
            "PUT": lambda: signed("PUT", "/bucket/object", body=b"changed"),
            "DELETE": lambda: signed("DELETE", "/bucket/object"),
        }[name]
        answer = await gateway.ask(gateway.fast, wire(change()))
        assert answer.startswith(b"HTTP/1.1 403")
        monkeypatch.undo()
        assert (await gateway.ask(gateway.fast, wire(signed("GET", "/bucket/object")))).endswith(BODY)
