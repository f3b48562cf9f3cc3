"""Encrypted bodies through a store: read as they were written, or not at all."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.encryption.chunked_aead import CHUNK, ENCRYPTED_CHUNK_BYTES
from sluice_s3.app.encryption.envelope import HEADER
from sluice_s3.app.encryption.scheme import S3, Scheme
from sluice_s3.app.errors import CustomerKeyNeeded, DataDamaged, KeyUnavailable, NoKeyRing, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.encryption.keyring import Keyring, change_ring
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import Buffer
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.jobs.encrypted import MASTER, content, of_customer, put_sealed, with_ring
from tests.unit.jobs.mixed import writing
from tests.unit.store.site import Bytes, prepare

pytestmark = pytest.mark.slow


@pytest.fixture
def driver() -> str:
    return "local"


@pytest.fixture
def settings(tmp_path: Path, driver: str) -> Settings:
    stores = {"default": {"driver": driver, "path": str(tmp_path / "store")}}
    index = f"sqlite:///{tmp_path}/index/sluice.db"
    (tmp_path / "store").mkdir()
    made = make_settings(tmp_path, stores=stores, index=index)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with writing(settings) as made:
        yield made


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("sealed", "owner", "us-east-1", 10)


def body_of(size: int) -> bytes:
    return hashlib.shake_128(b"body").digest(size)


class InPieces(Bytes):
    """A source that gives pieces of these sizes, and says before how much it is, or not."""

    def __init__(self, body: bytes, sizes: list[int], *, known: bool) -> None:
        super().__init__(body)
        self._sizes = [*sizes]
        self.whole = len(body)
        if not known:
            self.size = None

    async def read(self) -> Buffer:
        size = self._sizes.pop(0) if self._sizes else len(self._left)
        piece, self._left = self._left[:size], self._left[size:]
        if not piece:
            self.size = self.whole
        return piece


@given(st.integers(0, 3 * CHUNK), st.lists(st.integers(1, 2 * CHUNK), max_size=5), st.booleans())
async def test_any_pieces(size: int, sizes: list[int], known: bool) -> None:
    seal = of_customer()
    body = body_of(size)
    source = InPieces(body, sizes, known=known)
    sealed = seal.source(source)
    expected = sealed.size
    made = bytearray()
    while piece := await sealed.read():
        sealed.digest(piece)
        made += piece
    assert not await sealed.read()
    assert sealed.size == len(made)
    assert not known or expected == len(made)
    assert source.describe("").etag == hashlib.md5(body).hexdigest(), "of the plain bytes"


@pytest.mark.parametrize("driver", ["local", "efs", "fuse"])
@pytest.mark.parametrize("size", [3000, 300_000, 900_000, 3_000_000])
async def test_bodies_that_come_in_pieces(store: Store, bucket: Bucket, size: int) -> None:
    """Hashes are of the plain bytes, however a driver takes the pieces."""
    seal = await with_ring(store)
    source = InPieces(body_of(size), [size // 7] * 7, known=True)

    def describe(locator: str) -> NewVersion:
        return source.describe(locator)._replace(headers=metadata.pack_headers({}, scheme=seal.scheme))

    await objects.put(store, bucket.id, "k", seal.source(source), describe, None, {})
    version = await objects.find(store, bucket.id, "k")
    assert version.etag == hashlib.md5(body_of(size)).hexdigest()
    assert await content(store, bucket, "k") == body_of(size)


async def test_any_range_of_any_size(store: Store, bucket: Bucket) -> None:
    seal = await with_ring(store)
    sizes = (1, CHUNK, CHUNK + 1, 130_000, 5 * CHUNK + 7)
    for size in sizes:
        await put_sealed(store, bucket, str(size), body_of(size), seal)

    source = random.Random(5)
    for _ in range(sized(60, 3000)):
        size = source.choice(sizes)
        version = await objects.find(store, bucket.id, str(size))
        offset = source.randrange(size)
        length = source.choice([1, size - offset, source.randint(1, size - offset)])
        body = await reading.read_body(store, version, offset, length, {})
        if not isinstance(body, bytes):
            body = b"".join([bytes(piece) async for piece in body])  # type: ignore[arg-type]
        assert body == body_of(size)[offset : offset + length]
        taken = bytearray()
        await reading.feed_bytes(store, version, offset, length, taken.extend)
        assert taken == body


HEAD = HEADER
THIRD_CHUNK = HEAD + 2 * ENCRYPTED_CHUNK_BYTES


def chunk(sealed: bytes, number: int) -> bytes:
    return sealed[HEAD + number * ENCRYPTED_CHUNK_BYTES : HEAD + (number + 1) * ENCRYPTED_CHUNK_BYTES]


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "magic": lambda sealed: b"x" + sealed[1:],
    "key": lambda sealed: sealed[:10] + bytes(14) + sealed[24:],
    "wrapped key": lambda sealed: sealed[: HEAD - 1] + bytes([sealed[HEAD - 1] ^ 1]) + sealed[HEAD:],
    "first chunk": lambda sealed: sealed[:HEAD] + bytes([sealed[HEAD] ^ 1]) + sealed[HEAD + 1 :],
    "last byte": lambda sealed: sealed[:-1] + bytes([sealed[-1] ^ 1]),
    "swapped chunks": lambda sealed: sealed[:HEAD] + chunk(sealed, 1) + chunk(sealed, 0) + sealed[THIRD_CHUNK:],
    "repeated chunk": lambda sealed: sealed[:HEAD] + chunk(sealed, 0) * 2 + sealed[THIRD_CHUNK:],
    "zeros": lambda sealed: sealed[:HEAD] + bytes(len(sealed) - HEAD),
}  # fmt: skip


class Tampered:
    """A source of what another one seals, changed: the store's own checks are of the changed bytes."""

    def __init__(self, data: bytes, plain: Bytes) -> None:
        self.size: int | None = len(data)
        self._left = data
        self._plain = plain

    async def read(self) -> Buffer:
        data, self._left = self._left, b""
        return data

    def digest(self, piece: Buffer) -> None:
        """Nothing."""

    def verify(self) -> None:
        """Nothing."""


async def whole(store: Store, version: Version) -> bytes:
    body = await reading.read_body(store, version, 0, version.size, {})
    return body if isinstance(body, bytes) else b"".join([bytes(piece) async for piece in body])  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [2 * CHUNK + 10, 12 * CHUNK])
@pytest.mark.parametrize("name", [*CHANGES, "cut off"])
async def test_what_was_tampered_with_is_never_given_out(store: Store, bucket: Bucket, name: str, size: int) -> None:
    """By somebody who made the store's own checks right again."""
    seal = await with_ring(store)
    plain = Bytes(body_of(size))
    source = seal.source(Bytes(body_of(size)))
    pieces = []
    while piece := await source.read():
        pieces.append(bytes(piece))
    sealed = b"".join(pieces)
    told_size = size
    if name == "cut off":
        told_size = 2 * CHUNK
        data = sealed[: HEADER + 2 * ENCRYPTED_CHUNK_BYTES]
    else:
        data = CHANGES[name](sealed)
    headers = metadata.pack_headers({}, scheme=seal.scheme)

    def describe(locator: str) -> NewVersion:
        return plain.describe(locator)._replace(size=told_size, headers=headers)

    await objects.put(store, bucket.id, "k", Tampered(data, plain), describe, None, {})
    version = await objects.find(store, bucket.id, "k")
    taken = bytearray()
    with pytest.raises((DataDamaged, KeyUnavailable)):
        await reading.feed_bytes(store, version, 0, told_size, taken.extend)
    assert body_of(size).startswith(bytes(taken)), "what came before it is right"
    with pytest.raises((DataDamaged, KeyUnavailable)):
        await whole(store, version)


async def test_a_customers_key_is_needed(store: Store, bucket: Bucket) -> None:
    await put_sealed(store, bucket, "k", b"body", of_customer())
    version = await objects.find(store, bucket.id, "k")
    with pytest.raises(CustomerKeyNeeded):
        await reading.read_body(store, version, 0, 4, {})
    assert await content(store, bucket, "k") == b"body"


# the ring of a process
async def test_no_ring(store: Store) -> None:
    await store.keyring.refresh()
    with pytest.raises(NoKeyRing):
        _ = store.keyring.ring
    with pytest.raises(KeyUnavailable):
        store.keyring.unwrapping(1, bytes(16))


async def test_a_key_that_another_process_made_is_found(store: Store, bucket: Bucket) -> None:
    await with_ring(store)
    other = Keyring(store.index, lambda: MASTER)
    await other.refresh()
    await change_ring(store.index, MASTER, lambda ring: ring.with_new_version("sse-s3", 2))
    await other.read_anew()
    await put_sealed(store, bucket, "k", b"body", ObjectEncryption(Scheme(S3), partial(other.ring.envelope, "sse-s3")))
    assert await content(store, bucket, "k") == b"body"


async def test_a_new_key_waits_until_it_is_written_down(store: Store) -> None:
    await with_ring(store)
    with pytest.raises(StoreUnavailable):
        await store.keyring.wait_until_journaled(store.name, 0)
    journal_writer = JournalWriter(store)
    await journal_writer.run_once()
    await store.keyring.wait_until_journaled(store.name, 0)
    await change_ring(store.index, MASTER, lambda ring: ring.with_new_key("one", 2))
    await store.keyring.refresh()
    with pytest.raises(StoreUnavailable):
        await store.keyring.wait_until_journaled(store.name, 0)
    await journal_writer.run_once()
    await store.keyring.wait_until_journaled(store.name, 0)


async def test_a_ring_that_is_sealed_anew_goes_on_in_processes_that_know_it(store: Store) -> None:
    await with_ring(store)
    other = bytes(31) + b"\1"
    await change_ring(store.index, MASTER, lambda ring: ring.with_new_key("one", 2), other)
    await store.keyring.refresh()
    assert "one" not in store.keyring.ring.keys
    store.keyring.ring.envelope("sse-s3")
    started_later = Keyring(store.index, lambda: MASTER)
    with pytest.raises(StoreUnavailable):
        await started_later.refresh()
    started_later.master = lambda: other
    await started_later.refresh()
    assert "one" in started_later.ring.keys
