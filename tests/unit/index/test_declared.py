"""Declarations: what each must say, that its functions take the transaction's arguments, and how it is called."""

from __future__ import annotations

from inspect import signature
from typing import Any

import pytest

from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.declared_transactions import DeclaredTransactions
from sluice_s3.app.index.engine.declared import Declared, OwnWrite, Read, Write
from sluice_s3.app.index.engine.lock_keys import global_lock, key_lock, no_lock
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import new

DECLARED = {name: one for name, one in vars(DeclaredTransactions).items() if isinstance(one, Declared)}
WRITES = {name: one for name, one in DECLARED.items() if isinstance(one, Write)}
GROWING = {
    "add_account",
    "create_bucket",
    "put_version",
    "copy_version",
    "create_upload",
    "put_part",
    "copy_part",
    "complete_upload",
    "begin_tree_put",
    "begin_tree_complete",
    "adopt",
    "append",
    "record_uses",
}
"""What is refused when the disk of the index is full."""


def change(bucket_id: int, key: str, more: int = 7, last: str = "") -> Transaction[tuple[object, ...]]:
    """Return the arguments."""
    return (bucket_id, key, more, last)
    yield


def test_a_write_without_locks_cannot_be_declared() -> None:
    declare: Any = Write
    with pytest.raises(TypeError):
        declare(change)
    own: Any = OwnWrite
    with pytest.raises(TypeError):
        own(change)


class Asked:
    """In the place of an index: tells what it was asked for."""

    incarnation = 5

    def _commit(self, write: object, arguments: tuple[object, ...]) -> tuple[object, ...]:
        return arguments


def test_arguments_are_given_by_their_places() -> None:
    asked: Any = Asked()
    call: Any = Write(change, locks=key_lock).bind(asked)
    assert call(1, "k") == (1, "k", 7, "")
    assert call(1, "k", 2) == (1, "k", 2, "")
    assert call(1, "k", 2, "x") == (1, "k", 2, "x")
    assert call(1, last="x", key="k") == (1, "k", 7, "x")
    own: Any = OwnWrite(change, locks=no_lock).bind(asked)
    assert own("k") == (5, "k", 7, "")
    assert own(key="k", last="x") == (5, "k", 7, "x")
    wrong: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((), {}), ((1,), {}), ((1, "k", 2, "x", 3), {})]
    wrong += [((1, "k"), {"other": 1}), ((1,), {"last": ""}), ((1, "k"), {"key": "l"})]
    for given, named in wrong:
        with pytest.raises(TypeError):
            call(*given, **named)


@pytest.mark.parametrize("name", WRITES)
def test_functions_take_the_arguments_of_the_transaction(name: str) -> None:
    write = WRITES[name]
    parameters = signature(write.function).parameters
    assert all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters.values())
    arguments = list(parameters)
    signature(write.locks).bind(*arguments)
    if write.events is not None:
        signature(write.events).bind("result", *arguments)
    if write.procedure is not None:
        signature(write.procedure).bind(*arguments)
    if write.discovers is not None:
        assert arguments[0] in ("source_seq", "seq", "number")
    if isinstance(write, OwnWrite):
        assert arguments[0] == "incarnation"


def test_what_adds_to_the_index_says_so() -> None:
    assert {name for name, one in WRITES.items() if one.grows} == GROWING


def test_every_declaration_has_its_name_and_says_what_it_does() -> None:
    for name, one in DECLARED.items():
        assert one.name == name
        assert one.function.__doc__, name  # type: ignore[attr-defined]


async def test_a_declaration_is_bound_once(index: SqliteIndex, bucket: Bucket) -> None:
    assert isinstance(Index.bucket, Read)
    assert index.bucket is index.bucket
    assert await index.bucket(name="bucket") == bucket
    done = await index.put_version(bucket.id, "key", new("blob"), conditions=Conditions(if_none_match="*"))
    found = await index.version(bucket.id, key="key")
    assert found is not None
    assert found.seq == done.seq


async def test_an_engine_may_do_it_in_another_way(index: SqliteIndex, bucket: Bucket) -> None:
    class Other(type(index)):  # type: ignore[misc]
        async def note(self, name: str) -> str:
            return f"{await super().note(name)}!"

    await index.set_note("a", "b")
    index.__class__ = Other
    assert [await index.note("a") for _ in range(3)] == ["b!"] * 3


def test_what_runs_alone_names_no_lock() -> None:
    assert global_lock(1, "key") is None
    assert list(no_lock(1, "key")) == []
