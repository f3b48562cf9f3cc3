"""The memory that processes share: never other bytes than were kept, whatever the others do or leave."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from collections.abc import Callable

import pytest

from sluice_s3.storage_drivers.packs import format, record_cache
from sluice_s3.storage_drivers.packs.reader import PREFIX, RecordLocation
from sluice_s3.storage_drivers.packs.record_cache import ENTRY, FIRST_GROUP, GROUP, RING_HEAD, Read, RecordCache

WINDOW = 4096
SALT = 77


def make_memory(size: int) -> mmap.mmap:
    return mmap.mmap(-1, size)


def record(number: int, size: int = 1000) -> tuple[RecordLocation, bytes, Read]:
    """A record of a pack of equal ones: where it is, its body, and all its bytes."""
    total = format.RECORD_HEADER + size
    offset = format.PACK_HEADER + number * total
    body = random.Random(number).randbytes(size)
    head = format.record_head(format.BLOB, 1000 + number, offset, b"", body, SALT)
    return RecordLocation(5, offset, total, 1000 + number), body, Read(head + body, SALT)


def name(location: RecordLocation) -> str:
    return PREFIX + ".".join(f"{number:x}" for number in location)


def pack_of(count: int) -> bytes:
    return format.pack_header(5, SALT) + b"".join(record(number)[2].piece for number in range(count))


def test_another_process_reads_what_one_kept() -> None:
    memory = make_memory(1 << 20)
    one, other = RecordCache(memory, WINDOW), RecordCache(memory, WINDOW)
    location, body, read = record(3)
    assert other.body(name(location)) is None
    one.keep_record(location, read)
    assert other.body(name(location)) == body
    assert other.cached_bytes == one.cached_bytes >= len(read.piece)


def test_records_across_windows() -> None:
    memory = make_memory(1 << 20)
    cache, whole = RecordCache(memory, WINDOW), pack_of(20)
    cache.keep_windows(5, range(3), Read(whole[: 3 * WINDOW], SALT))
    inside = [number for number in range(20) if sum(record(number)[0][1:3]) <= 3 * WINDOW]
    assert len(inside) == 11
    for number in inside:
        location, body, _ = record(number)
        assert RecordCache(memory, WINDOW).body(name(location)) == body
    assert cache.body(name(record(max(inside) + 1)[0])) is None


def test_a_window_that_ended_where_the_pack_did_gives_way() -> None:
    cache, whole = RecordCache(make_memory(1 << 20), WINDOW), pack_of(3)
    cache.keep_windows(5, range(1), Read(whole[:1500], SALT))
    later = record(2)[0]
    assert cache.body(name(later)) is None
    assert not cache.around(later), "the pack grows"
    cache._growing.clear()
    assert cache.around(later), "the stale window went"


@pytest.mark.parametrize("where", ["index", "entry", "record"])
def test_a_torn_entry_is_a_miss(where: str) -> None:
    memory = make_memory(1 << 18)
    cache, (location, body, read) = RecordCache(memory, WINDOW), record(1)
    key = record_cache._record_key(location)
    for seed in range(300):
        cache.keep_record(location, read)
        start = cache._start + (cache._place(key) or 0) % cache._ring
        at, size = {
            "index": (cache._set_of(key), record_cache.SET.size),
            "entry": (start, ENTRY.size),
            "record": (start + ENTRY.size, len(read.piece)),
        }[where]
        chance = random.Random(seed)
        torn = chance.randrange(at, at + size)
        memory[torn : at + size] = chance.randbytes(at + size - torn)
        assert cache.body(name(location)) in (body, None)
        if where == "record":
            assert cache.body(name(location)) is None
    cache.keep_record(location, read)
    assert cache.body(name(location)) == body


def test_a_record_that_another_overwrote_is_a_miss() -> None:
    """Two processes took the same place: the head of the ring went back."""
    memory = make_memory(1 << 18)
    cache = RecordCache(memory, WINDOW)
    first, second = record(1), record(2)
    cache.keep_record(first[0], first[2])
    RING_HEAD.pack_into(memory, 0, 0)
    cache.keep_record(second[0], second[2])
    assert cache.body(name(first[0])) is None
    assert cache.body(name(second[0])) == second[1]


def test_an_entry_beyond_the_head_is_a_miss() -> None:
    memory = make_memory(1 << 18)
    cache = RecordCache(memory, WINDOW)
    location, _, read = record(1)
    cache.keep_record(location, read)
    cache.keep_record(location, read)
    RING_HEAD.pack_into(memory, 0, 8)
    assert cache.body(name(location)) is None


def test_what_is_read_stays_and_the_rest_goes() -> None:
    cache = RecordCache(make_memory(1 << 18), WINDOW)
    asked_for, seldom = record(0, 3000), record(1, 3000)
    for kept in (asked_for, seldom):
        cache.keep_record(kept[0], kept[2])
    for number in range(2, 500):
        location, body, read = record(number, 3000)
        cache.keep_record(location, read)
        assert cache.body(name(location)) == body
        assert cache.body(name(asked_for[0])) == asked_for[1]
        assert cache.cached_bytes <= 1 << 18
    assert cache.body(name(seldom[0])) is None


def test_no_entry_takes_the_whole_ring() -> None:
    cache = RecordCache(make_memory(1 << 16), WINDOW)
    small, large = record(0), record(1, size=30_000)
    cache.keep_record(small[0], small[2])
    cache.keep_record(large[0], large[2])
    assert cache.body(name(large[0])) is None
    assert cache.body(name(small[0])) == small[1]


def places(*windows: int) -> list[RecordLocation]:
    return [RecordLocation(5, window * WINDOW + 9, 100, 1) for window in windows]


def test_while_there_is_room_neighbours_are_read_too() -> None:
    cache = RecordCache(make_memory(4 * GROUP * WINDOW), WINDOW)
    (far,) = places(3 * GROUP + 2)
    assert cache.around(far) == range(3 * GROUP, 3 * GROUP + FIRST_GROUP)
    RING_HEAD.pack_into(cache._memory, 0, cache._ring)
    assert not cache.around(far._replace(pack=6)), "what is there has to go for it"


@pytest.mark.parametrize("step", [1, -1])
def test_windows_grow_where_neighbours_are_read(step: int) -> None:
    cache = RecordCache(make_memory(1 << 16), WINDOW)
    RING_HEAD.pack_into(cache._memory, 0, cache._ring)
    at, counts = 80, []
    for _ in range(9):
        read = cache.around(places(at)[0])
        counts.append(len(read))
        cache.pending.update(dict.fromkeys([(5, number) for number in read]))
        at += step
        while (5, at) in cache.pending:
            at += step
    assert counts[0] == 0, "a single read says nothing"
    assert counts[-1] == GROUP
    assert sum(counts) > 4 * GROUP


def test_reads_far_from_each_other_read_no_windows() -> None:
    cache = RecordCache(make_memory(1 << 16), WINDOW)
    RING_HEAD.pack_into(cache._memory, 0, cache._ring)
    assert not any(cache.around(place) for place in places(*range(0, 3000, 10)))
    assert len(cache._recent) <= record_cache.RECENT_READS


def in_child(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return pid


def hammer(cache: RecordCache, seed: int, seconds: float) -> int:
    """Keep and read records without an end in sight; return how many were there."""
    chance, hits = random.Random(seed), 0
    known = [record(number, 500 + number % 7 * 300) for number in range(100)]
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        location, body, read = chance.choice(known)
        found = cache.body(name(location))
        assert found in (body, None)
        if found is None:
            cache.keep_record(location, read)
        else:
            hits += 1
    return hits


def test_processes_that_write_at_once_never_read_anything_else() -> None:
    memory = make_memory(1 << 17)
    children = [in_child(lambda: hammer(RecordCache(memory, WINDOW), os.getpid(), 1.0)) for _ in range(3)]
    assert hammer(RecordCache(memory, WINDOW), 0, 1.0) > 100
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]


def test_a_process_that_is_killed_holds_up_nobody() -> None:
    memory = make_memory(1 << 17)
    cache = RecordCache(memory, WINDOW)
    for _ in range(20):
        child = in_child(lambda: hammer(RecordCache(memory, WINDOW), os.getpid(), 30))
        time.sleep(0.02)
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        assert hammer(cache, 1, 0.05) > 0
