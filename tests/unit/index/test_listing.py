"""Listing against a model that looks at every key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sluice_s3.app.index.buckets import transactions as buckets
from sluice_s3.app.index.multipart import transactions as multipart
from sluice_s3.app.index.multipart.listing import uploads
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.listing import END, list_current, successor
from sluice_s3.app.index.objects.rows import Page
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite.runner import read
from tests.support.environment import sized
from tests.unit.index.tools import OWNER, Memory, new

# neighbours in UTF-8 order, characters of each length, the edges of the surrogates, the last character of all
ALPHABET = "ab/-\0é\ud7ff\ue000\U0001f600\U0010ffff"
TEXT = st.text(alphabet=ALPHABET, max_size=5)
KEYS = st.sets(st.text(alphabet=ALPHABET, min_size=1, max_size=5), max_size=25)
DELIMITERS = st.one_of(st.sampled_from(["", "/", "a", "//", "\U0010ffff"]), TEXT)


@pytest.fixture(scope="module")
def shared_memory() -> Iterator[Memory]:
    made = Memory()
    yield made
    made.close()


def byte_order(text: str) -> bytes:
    return text.encode()


def model(keys: set[str], prefix: str, delimiter: str, after: str, limit: int) -> Page:
    """What `list_current` promises, the slow way; entries are keys."""
    shown: dict[str, bool] = {}
    for key in keys:
        if not key.startswith(prefix):
            continue
        at = key.find(delimiter, len(prefix)) if delimiter else -1
        entry = key if at < 0 else key[: at + len(delimiter)]
        if byte_order(entry) > byte_order(after):
            shown[entry] = at >= 0
    ordered = sorted(shown, key=byte_order)
    page = ordered[:limit]
    truncated = len(ordered) > limit > 0
    entries = [entry for entry in page if not shown[entry]]
    return Page(entries, [entry for entry in page if shown[entry]], truncated, page[-1] if page else "")


@settings(max_examples=sized(150, 4000), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(KEYS, TEXT, DELIMITERS, TEXT, st.integers(0, 12))
@example({"a/b", "a/c", "b"}, "", "/", "a/", 10)
@example({"a/b", "a/c", "b"}, "", "/", "a/b", 10)
@example({"a/b", "a/c", "b"}, "a/", "/", "a", 10)
@example({"\U0010ffff", "\U0010ffff\U0010ffffa"}, "\U0010ffff", "\U0010ffff", "", 10)
@example({"\ud7ff/a", "\ue000/b"}, "", "/", "", 10)
def test_pages_are_the_models(
    shared_memory: Memory, keys: set[str], prefix: str, delimiter: str, after: str, limit: int
) -> None:
    memory = shared_memory
    bucket_id = memory.run(
        buckets.create_bucket(f"b{memory.rows('SELECT value FROM sequence')[0][0]}", OWNER, "r", 10**6)
    ).id
    for key in keys:
        memory.run(objects.put_version(bucket_id, key, new(), None))
    page = memory.run(list_current(bucket_id, prefix, delimiter, after, limit))
    shown = page._replace(rows=[entry.key for entry in page.entries])
    assert shown == model(keys, prefix, delimiter, after, limit)

    everything = model(keys, prefix, delimiter, "", 10**6)
    walked: list[str] = []
    position, more = "", True
    while more:
        page = memory.run(list_current(bucket_id, prefix, delimiter, position, 2))
        walked += sorted([*(entry.key for entry in page.entries), *page.prefixes], key=byte_order)
        position, more = page.last, page.truncated
    assert walked == sorted([*everything.rows, *everything.prefixes], key=byte_order)


@given(st.text(alphabet=ALPHABET, max_size=4), st.text(alphabet=ALPHABET, max_size=4), st.text(max_size=4))
def test_successor_is_the_end_of_a_prefix(prefix: str, tail: str, other: str) -> None:
    end = successor(prefix)
    end.encode()  # no surrogate
    assert byte_order(prefix + tail) < byte_order(end)
    if byte_order(prefix) <= byte_order(other) < byte_order(end):
        assert other.startswith(prefix)


def test_the_end_is_behind_every_key() -> None:
    assert byte_order("\U0010ffff" * 256) < byte_order(END)
    assert successor("") == successor("\U0010ffff") == END
    assert successor("a\U0010ffff") == "b"
    assert successor("a\ud7ff") == "a\ue000"


class Shown(NamedTuple):
    key: str
    number: int


@settings(max_examples=sized(100, 2000), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.text(alphabet="ab/é", min_size=1, max_size=3), max_size=12),
    st.text(alphabet="ab/é", max_size=2),
    st.sampled_from(["", "/", "a"]),
    st.text(alphabet="ab/é", max_size=3),
    st.one_of(st.none(), st.integers(0, 11)),
    st.integers(0, 6),
)
@example(["a", "a", "a"], "", "", "a", 1, 6)
@example(["a"] * 5 + ["b"], "", "/", "", None, 2)
def test_uploads_are_the_models(
    shared_memory: Memory, keys: list[str], prefix: str, delimiter: str, after: str, behind: int | None, limit: int
) -> None:
    memory = shared_memory
    bucket_id = memory.run(
        buckets.create_bucket(f"u{memory.rows('SELECT value FROM sequence')[0][0]}", OWNER, "r", 10**6)
    ).id
    opened = [memory.run(multipart.create_upload(bucket_id, key, "{}", "", "", "", OWNER)) for key in keys]
    number = opened[behind].id if behind is not None and behind < len(opened) else None

    shown: list[Shown] = []
    for upload in sorted(opened, key=lambda upload: (byte_order(upload.key), upload.id)):
        at = upload.key.find(delimiter, len(prefix)) if delimiter else -1
        entry = Shown(upload.key[: at + len(delimiter)], 0) if at >= 0 else Shown(upload.key, upload.id)
        follows = byte_order(entry.key) > byte_order(after)
        inside = number is not None and entry.number > number and entry.key == after
        if upload.key.startswith(prefix) and (follows or inside) and entry not in shown:
            shown.append(entry)
    found, prefixes, truncated = memory.run(uploads(bucket_id, prefix, delimiter, after, number, limit))
    answered = [*(Shown(upload.key, upload.id) for upload in found), *(Shown(prefix, 0) for prefix in prefixes)]
    assert sorted(answered, key=lambda entry: (byte_order(entry.key), entry.number)) == shown[:limit]
    assert truncated == (len(shown) > limit > 0)


def statements(transaction: Transaction[Page], memory: Memory) -> tuple[Page, int, int]:
    """The page, how many statements it took, and how many rows they gave."""
    count = rows = 0

    def counting() -> Transaction[Page]:
        nonlocal count, rows
        answer = None
        try:
            while True:
                step = transaction.send(answer)
                answer = yield step
                count += 1
                rows += len(answer)
        except StopIteration as stop:
            page: Page = stop.value
            return page

    return read(memory.connection.cursor(), counting()), count, rows


def test_cost_follows_the_answer_and_not_the_bucket(memory: Memory) -> None:
    bucket_id = memory.run(buckets.create_bucket("b", OWNER, "r", 10)).id
    for directory in range(10):
        for number in range(300):
            memory.run(objects.put_version(bucket_id, f"dir{directory}/{number:04}", new(), None))
    page, count, rows = statements(list_current(bucket_id, "", "/", "", 1000), memory)
    assert page.prefixes == [f"dir{directory}/" for directory in range(10)]
    assert count <= 11
    assert rows <= 11
    page, count, rows = statements(list_current(bucket_id, "dir3/", "/", "", 1000), memory)
    assert len(page.entries) == 300
    assert count <= 10  # 1, 2, 4, … rows at a time
    assert rows == 300
    page, count, rows = statements(list_current(bucket_id, "", "", "dir5", 100), memory)
    assert (count, rows, page.truncated) == (1, 101, True)
