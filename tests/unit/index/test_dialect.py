"""Statements that are written once as text: each engine can read all of them, whoever runs them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

import sluice_s3.app.index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.support import postgres
from tests.unit.index.tools import OWNER, Memory, new, open_at, part


def _place(name: str) -> tuple[str, str]:
    """The module of a query's name, and what is behind it."""
    parts = name.split(".")
    return ".".join(parts[:2]), ".".join(parts[2:])


def _queries() -> Iterator[tuple[str, Query]]:
    for found in pkgutil.walk_packages(sluice_s3.app.index.__path__, "sluice_s3.app.index."):
        for name, value in vars(importlib.import_module(found.name)).items():
            for key, query in value.items() if isinstance(value, dict) else [("", value)]:
                if isinstance(query, Query):
                    yield f"{found.name.removeprefix('sluice_s3.app.index.')}.{name}.{key}".rstrip("."), query


ALL = dict(_queries())


@pytest.mark.parametrize("name", ALL)
def test_sqlite_reads_it(memory: Memory, name: str) -> None:
    query = ALL[name]
    given = ["[]" if kind == "json" else "1" for kind in query.types.values()]
    assert memory.connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", given).fetchall()


@pytest.mark.parametrize("name", [name for name, query in ALL.items() if {"a", "after"} & {*query.types}])
def test_a_batch_is_found_by_its_key_and_is_not_sorted(memory: Memory, name: str) -> None:
    query = ALL[name]
    given = ["[]" if kind == "json" else "1" for kind in query.types.values()]
    plan = [row[3] for row in memory.connection.execute(f"EXPLAIN QUERY PLAN {query.sql}", given)]
    assert not [step for step in plan if "TEMP B-TREE" in step]
    tables = ("versions", "parts", "pieces", "uploads", "removals", "discards")
    first = next(step for step in plan if step.split()[1] in tables and not step.startswith("CO-ROUTINE"))
    assert first.startswith("SEARCH"), plan


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres.server().lent() as lent:
        yield lent


async def test_postgres_reads_all(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for name, query in ALL.items():
            prepared = await connection.prepare(query.postgres)
            kinds = ["bigint" if one.name == "int8" else one.name for one in prepared.get_parameters()]
            assert kinds == [*query.types.values()], name
    finally:
        await connection.close()


def test_parameters_have_the_places_of_their_first_use() -> None:
    def render(dialect: SqlDialect) -> str:
        later = dialect.text("later")
        first, items = dialect.number("first"), dialect.numbers("list")
        return f"SELECT {first}, {later}, {first} WHERE 1 IN ({items})"

    query = Query(render)
    assert [*query.types] == ["later", "first", "list"]
    assert query.sql == "SELECT ?2, ?1, ?2 WHERE 1 IN (SELECT value FROM json_each(?3))"
    assert query.postgres.startswith("SELECT $2::bigint, $1::text, $2::bigint WHERE 1 IN (")
    assert query.bind(first=1, later="x", list=(2, 3), more=4) == (query, ("x", 1, "[2,3]"))
    with pytest.raises(KeyError):
        query.bind(first=1, later="x")


def test_a_parameter_has_one_type() -> None:
    with pytest.raises(TypeError, match="a is bigint in one place and text in another"):
        Query(lambda dialect: f"SELECT {dialect.number('a')}, {dialect.text('a')}")


def test_what_one_engine_alone_says_is_nowhere_else() -> None:
    """Which the other would not always refuse: what it calls the same may be something else there."""
    engines = re.compile(r"json_\w+\(|\bGLOB\b|\bLIKE\b|\binstr\(|\bstrpos\(|::")
    modules = {module for module, _ in map(_place, ALL)}
    assert "reclaim.queries" in modules
    for module in modules:
        file = Path(sluice_s3.app.index.__file__).parent / f"{module.replace('.', '/')}.py"
        found = engines.findall(file.read_text())
        assert not found, module


@pytest.mark.parametrize("name", ["plain", "\1 and \1\2", "é"])
async def test_a_locator_of_any_characters_is_found(index: SqliteIndex, bucket: Bucket, name: str) -> None:
    locator = f"t:1.2.3:bucket/{name}"
    await index.put_version(bucket.id, f"key {name}", new(locator))
    assert await index.find_referenced([locator, "other"]) == {locator}
    assert [reference.locator async for reference in index.references()] == [locator]


async def test_which_stores_hold_anything(index: SqliteIndex, bucket: Bucket) -> None:
    assert not await index.any_on("default")
    await index.put_version(bucket.id, "a", new("slow/p:1.2.3.4"))
    assert not await index.any_on("default")
    assert not await index.any_on("slo")
    assert await index.any_on("slow")
    await index.put_version(bucket.id, "b", new("p:1.2.3.4"))
    assert await index.any_on("default")
    assert not await index.any_on("p")


async def test_how_much_is_held(index: SqliteIndex, bucket: Bucket) -> None:
    assert await index.bucket_size(bucket.id) == (0, 0)
    assert await index.bucket_usage(bucket.id) == (0, 0)
    await index.put_version(bucket.id, "a", new("p:1.1", size=7))
    await index.put_version(bucket.id, "b", new("f:whole", size=9))
    upload = await index.create_upload(bucket.id, "c", "{}", "STANDARD", "", "", OWNER)
    await index.put_part(upload, part(1, "p:1.2", "p:2.1", size=5))
    assert await index.bucket_size(bucket.id) == (2, 16)
    assert await index.bucket_usage(bucket.id) == (26, 2)
    assert await index.stored_bytes("default") == 26
    assert await index.versions_count() == 2
    assert await index.referenced_bytes(["p:1.", "p:3."], len) == {"p:1.": 10}
    held = await index.find_references_in_packs(["p:1.", "p:2."], 10)
    assert set(held.holders) == {"p:1.1", "p:1.2", "p:2.1"}
    assert [(blob.locator, key) for key, blob in await index.find_part_blobs(bucket.id)] == [
        ("p:1.2", "c"),
        ("p:2.1", "c"),
    ]


async def test_what_lives_of_a_pack_counts_once(index: SqliteIndex, directory: Path, bucket: Bucket) -> None:
    other = open_at(directory)
    await other.start()
    pack = await other.open_pack()
    await other.seal_pack(pack, 100)
    await index.put_version(bucket.id, "a", new(f"p:{pack}.1"))
    source = await index.version(bucket.id, "a")
    assert source is not None
    await index.copy_version(source.seq, bucket.id, "copy", new(f"p:{pack}.1"))
    await index.put_version(bucket.id, "b", new(f"p:{pack}.2"))

    def packed(locator: str) -> tuple[int, int]:
        number, _, _ = locator.removeprefix("p:").partition(".")
        return int(number), 10

    assert await index.live_bytes(packed) == [], "its writer lives"
    await other.close()
    assert [(found.id, live) for found, live in await index.live_bytes(packed)] == [(pack, 20)]
