"""The driver over fsspec on memory, a directory and an sftp server, when nothing goes wrong."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice_s3.storage_drivers.base import UNKNOWN_SIZE, AppendRequest, Durability
from sluice_s3.storage_drivers.blobs.footer import CHUNK
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed
from sluice_s3.storage_drivers.fsspec.store import FsspecDriver, is_in_memory
from tests.unit.storage_drivers.conftest import MakeStore
from tests.unit.storage_drivers.places import Place, file_place, memory_place
from tests.unit.storage_drivers.tools import Pieces, blobs, content, split

pytestmark = pytest.mark.slow

KINDS = ["memory", "file", "sftp"]
NEAR = pytest.mark.parametrize("place", ["memory", "file"], indirect=True)
"""For tests of what the server of a place has no part in: one takes seconds over ssh."""


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "memory":
        return memory_place()
    if request.param == "file":
        return file_place(tmp_path / "store")
    place: Place = request.getfixturevalue("ssh").place(tmp_path / "store")
    return place


async def test_put_and_read(store: FsspecDriver, place: Place) -> None:
    locator = await store.put(0x1234ABCD, Pieces(b"one body"), make_header=lambda: b"claim")
    assert place.read("data/cd/000000001234abcd").startswith(b"one body")
    assert await content(store, locator, 0, 8) == b"one body"
    assert await store.read(locator, 4, 2) == b"bo"
    assert await store.read(locator, 0, 0) == b""
    assert store.try_read(locator, 0, 8) is None


@given(
    body=st.binary(min_size=0, max_size=5000),
    cuts=st.lists(st.integers(min_value=1, max_value=1500), max_size=5),
    known=st.booleans(),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_size_in_any_pieces(store: FsspecDriver, body: bytes, cuts: list[int], known: bool) -> None:
    source = Pieces(*split(body, cuts))
    if not known:
        source.size = None
    locator = await store.put(7, source)
    try:
        assert source.verified
        assert source.hash.digest() == Pieces.hash_of(body)
        assert await content(store, locator, 0, len(body)) == body
        middle = len(body) // 2
        assert await content(store, locator, middle, len(body) - middle) == body[middle:]
    finally:
        await store.discard(locator)


@pytest.mark.parametrize("buffer", [bytes, bytearray, memoryview])
async def test_pieces_may_be_any_buffer(store: FsspecDriver, buffer: type) -> None:
    locator = await store.put(1, Pieces(buffer(b"first "), buffer(b"second")))
    assert await content(store, locator, 0, 12) == b"first second"
    locator = await store.put(2, Pieces(buffer(b"whole")))
    assert await content(store, locator, 0, 5) == b"whole"


async def test_a_large_blob_comes_chunk_by_chunk(make_store: MakeStore) -> None:
    body = os.urandom(4 * CHUNK + 1000)
    locator = await (await make_store()).put(1, Pieces(body[:1_500_000], body[1_500_000:]))
    other = await make_store()
    found: list[bytes] = []
    while (at := sum(map(len, found))) < len(body):
        found.append(await other.read(locator, at, len(body) - at))
    assert list(map(len, found)) == [CHUNK] * 4 + [1000]
    assert b"".join(found) == body
    assert await other.read(locator, CHUNK + 10, 20) == body[CHUNK + 10 : CHUNK + 30]
    third = await make_store()
    assert await third.read(locator, 3 * CHUNK + 7, CHUNK) == body[3 * CHUNK + 7 : 4 * CHUNK]
    assert await content(third, locator, 5, len(body) - 5) == body[5:]


@NEAR
@pytest.mark.parametrize("size", [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + (64 << 10) - 80, CHUNK + (64 << 10), 2 * CHUNK])
async def test_sizes_around_what_is_asked_for_first(make_store: MakeStore, size: int) -> None:
    body = os.urandom(size)
    locator = await (await make_store()).put(1, Pieces(body))
    assert await content(await make_store(), locator, 0, size) == body


@NEAR
async def test_timings_of_every_phase(store: FsspecDriver) -> None:
    for source in (Pieces(b"a", b"b"), Pieces(b"a")):
        timings = {"open": 1.0}
        await store.put(source.size or 0, source, timings)
        assert timings["open"] > 1.0
        assert timings["write"] > 0
        assert timings["sync"] > 0


async def test_an_id_is_used_once(store: FsspecDriver, place: Place) -> None:
    await store.put(5, Pieces(b"first"))
    for again in (Pieces(b"second"), Pieces(b"sec", b"ond")):
        with pytest.raises(StoreFailed):
            await store.put(5, again)
    assert place.read("data/05/0000000000000005").startswith(b"first")


async def test_many_at_once(store: FsspecDriver) -> None:
    bodies = {blob_id: os.urandom(blob_id * 700) for blob_id in range(1, 60)}
    locators = await asyncio.gather(
        *(store.put(blob_id, Pieces(*split(body, [1000]))) for blob_id, body in bodies.items())
    )
    found = await asyncio.gather(*(content(store, locator, 0, n * 700) for n, locator in enumerate(locators, 1)))
    assert found == list(bodies.values())


async def test_a_slow_source_holds_nobody_up(make_store: MakeStore) -> None:
    store = await make_store(threads=2)
    gate = asyncio.Event()
    slow = [asyncio.create_task(store.put(n, Pieces(b"a" * 100, gate.wait(), b"b"))) for n in range(1, 9)]
    locator = await asyncio.wait_for(store.put(99, Pieces(b"quick")), 60)
    assert await content(store, locator, 0, 5) == b"quick"
    gate.set()
    for locator in await asyncio.gather(*slow):
        assert await content(store, locator, 0, 101) == b"a" * 100 + b"b"


async def test_discard_is_final_and_repeatable(store: FsspecDriver, place: Place) -> None:
    locator = await store.put(9, Pieces(b"x"))
    assert await content(store, locator, 0, 1) == b"x"
    await store.discard(locator)
    await store.discard(locator)
    assert place.stored() == []
    for length in (0, 1):
        with pytest.raises(BlobMissing):
            await store.read(locator, 0, length)


async def test_discard_by_id_and_of_many(store: FsspecDriver, place: Place) -> None:
    await store.put(9, Pieces(b"x"))
    assert await store.discard_id(9)
    assert not await store.discard_id(9)
    locators = [await store.put(blob_id, Pieces(b"x")) for blob_id in (1, 2, 0x102)]
    await store.put(3, Pieces(b"kept"))
    await store.discard_many([*locators, store.locator(99)])
    assert place.stored() == ["0000000000000003"]


@NEAR
@pytest.mark.parametrize(
    "locator", ["", "f:", "f:xyz", "f:../../../../etc/pass", "p:0000000000000001", "f:000000000000000G"]
)
async def test_a_locator_of_another_kind(store: FsspecDriver, locator: str) -> None:
    with pytest.raises(BlobMissing):
        await store.read(locator, 0, 1)
    with pytest.raises(BlobMissing):
        store.try_read(locator, 0, 1)
    with pytest.raises(BlobMissing):
        await store.discard(locator)
    with pytest.raises(BlobMissing):
        store.blob_id(locator)


async def test_walk_finds_all_and_nothing_else(store: FsspecDriver, place: Place) -> None:
    numbers = [*range(1, 40), *range(0x100, 0x8100, 0x100)]
    expected = {await store.put(blob_id, Pieces(b"x" * (blob_id % 97 + 1))): blob_id % 97 + 1 for blob_id in numbers}
    place.write("data/00/notes.txt", b"not ours")
    await store.write_journal(0x77, [])
    assert await blobs(store) == expected
    assert store.blob_id(store.locator(2**64 - 1)) == 2**64 - 1


async def test_usage_is_untold_but_asks(store: FsspecDriver, place: Place) -> None:
    assert (await store.usage()).free == UNKNOWN_SIZE
    place.remove("store.json")
    with pytest.raises(StoreFailed):
        await store.usage()


@NEAR
async def test_every_step_is_named(make_store: MakeStore) -> None:
    steps: list[str] = []
    store = await make_store(at=steps.append)
    await store.discard(await store.put(1, Pieces(b"a", b"b")))
    assert steps == ["put.created", "put.written", "put.written", "put.closed", "discard.unlinked"]


@NEAR
async def test_of_packs_there_are_none(store: FsspecDriver) -> None:
    assert store.capabilities.append_limit == 0
    with pytest.raises(StoreFailed):
        store.append(AppendRequest(1, b"", Pieces(), lambda: b"", lambda _: None, {}))
    assert store.packed(store.locator(1)) is None
    assert store.whole_pack(store.locator(1)) == 0
    assert [pack async for pack in store.packs()] == []
    assert await store.pack_file(1) is None
    assert await store.list_records(1, 0, 10) == ([], 0)
    assert await store.move(["p:1.2.3.4"]) == {}
    assert isinstance((await store.reread_records(["p:1.2.3.4"], lambda *_: None))[0], BlobMissing)
    for call in (store.pack_locator, store.pack_prefix):
        with pytest.raises(StoreFailed):
            call(1)
    await store.close_unlinked()
    await store.close_packs()


@NEAR
async def test_a_closed_driver_refuses(store: FsspecDriver) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StoreFailed):
        await store.put(1, Pieces(b"a"))
    with pytest.raises(StoreFailed):
        await store.usage()


@NEAR
async def test_durability_is_relaxed_and_only_that(make_store: MakeStore, place: Place) -> None:
    with pytest.raises(StoreFailed, match="relaxed"):
        await make_store(durability=Durability.FULL)
    assert not place.raw.exists(place.base) or place.stored("") == []
    assert (await make_store()).capabilities.durability is Durability.RELAXED


def test_what_only_one_process_sees() -> None:
    assert is_in_memory("memory://x")
    assert is_in_memory("simplecache::memory://x")
    assert not is_in_memory("sftp://host/memory")
    assert FsspecDriver("memory://x").capabilities.one_process


# which store it is
async def test_a_store_is_found_again(make_store: MakeStore, place: Place) -> None:
    first = await make_store()
    locator = await first.put(1, Pieces(b"x"))
    again = await make_store(create=False)
    assert again.identity == first.identity
    assert await content(again, locator, 0, 1) == b"x"
    assert "probe" not in " ".join(place.stored(""))


async def test_an_empty_place_is_not_taken_for_a_known_store(make_store: MakeStore, place: Place) -> None:
    with pytest.raises(StoreFailed, match="no store here"):
        await make_store(create=False)
    first = await make_store()
    await first.put(1, Pieces(b"x"))
    place.remove("store.json")
    with pytest.raises(StoreFailed, match="no store here"):
        await make_store(create=False)
    with pytest.raises(StoreFailed, match="files in data"):
        await make_store()


@NEAR
async def test_an_identity_that_was_not_finished_is_made_anew(make_store: MakeStore, place: Place) -> None:
    await make_store()
    place.write("store.json", b'{"layout": "obj')
    assert (await make_store()).identity is not None
    place.write("store.json", b'{"layout": "tree", "store": "%b", "generation": 1}\n' % (b"0" * 32))
    with pytest.raises(StoreFailed, match="layout"):
        await make_store()


# damage
BODY = os.urandom(2 * CHUNK + 1000)
NAME = "data/07/0000000000000007"


def _flipped(content: bytes, at: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 4
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "bit in the first chunk": lambda old: _flipped(old, 17),
    "bit in the last chunk": lambda old: _flipped(old, len(BODY) - 1),
    "bit in the checks": lambda old: _flipped(old, len(BODY) + 3),
    "bit in the claim": lambda old: _flipped(old, len(BODY) + 3 * 8 + 2),
    "bit in the trailer": lambda old: _flipped(old, -20),
    "last bit": lambda old: _flipped(old, -1),
    "zeroed chunk": lambda old: old[:CHUNK] + bytes(CHUNK) + old[2 * CHUNK :],
    "zeroed whole": lambda old: bytes(len(old)),
    "cut by a byte": lambda old: old[:-1],
    "cut behind the body": lambda old: old[: len(BODY)],
    "cut in the body": lambda old: old[:CHUNK],
    "empty": lambda old: b"",
    "longer": lambda old: old + b"\0",
    "swapped chunks": lambda old: old[CHUNK : 2 * CHUNK] + old[:CHUNK] + old[2 * CHUNK :],
}


@pytest.mark.parametrize(
    ("place", "damage"),
    [*((kind, damage) for kind in KINDS[:2] for damage in DAMAGES), ("sftp", "swapped chunks"), ("sftp", "empty")],
    indirect=["place"],
)
async def test_a_damaged_object_is_not_read(make_store: MakeStore, place: Place, damage: str) -> None:
    writer = await make_store()
    locator = await writer.put(7, Pieces(BODY[:1_500_000], BODY[1_500_000:]), make_header=lambda: b"claim")
    place.write(NAME, DAMAGES[damage](place.read(NAME)))
    store = await make_store()
    taken = bytearray()
    with pytest.raises(BlobDamaged):
        await store.feed(locator, 0, len(BODY), taken.extend)
    assert BODY.startswith(taken), "what was given before was right"
    assert len(taken) < len(BODY)
    with pytest.raises(BlobDamaged):
        async for _ in store.reread(locator, None):
            pass
    assert not store.contents().intact(locator)


async def test_damage_is_found_where_the_footer_is_known(store: FsspecDriver, place: Place) -> None:
    locator = await store.put(7, Pieces(BODY), make_header=lambda: b"claim")
    assert await content(store, locator, 0, len(BODY)) == BODY
    whole = place.read(NAME)
    place.write(NAME, _flipped(whole, CHUNK + 5))
    assert await content(store, locator, 10, 100) == BODY[10:110]
    with pytest.raises(BlobDamaged):
        await content(store, locator, CHUNK - 1, 2)
    place.write(NAME, whole[: CHUNK + 10])
    with pytest.raises(BlobDamaged):
        await store.read(locator, CHUNK, 5)
    place.remove(NAME)
    with pytest.raises(BlobMissing):
        await store.read(locator, 0, 5)


@NEAR
async def test_the_footer_of_another_blob_is_none(store: FsspecDriver, place: Place) -> None:
    await store.put(7, Pieces(b"seven"))
    locator = await store.put(8, Pieces(b"eight"))
    place.write("data/08/0000000000000008", place.read(NAME))
    with pytest.raises(BlobDamaged):
        await store.read(locator, 0, 1)


@NEAR
async def test_a_short_blob_is_damaged(store: FsspecDriver) -> None:
    locator = await store.put(9, Pieces(b"12345"))
    with pytest.raises(BlobDamaged):
        await store.read(locator, 3, 3)


@NEAR
async def test_reread_gives_the_body(store: FsspecDriver) -> None:
    locator = await store.put(7, Pieces(BODY))
    taken = bytearray()
    assert [count async for count in store.reread(locator, taken.extend)] == [CHUNK, CHUNK, 1000]
    assert taken == BODY
