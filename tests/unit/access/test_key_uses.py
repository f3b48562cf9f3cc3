"""What a process notes of the keys that it sees, and when it writes that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from sluice_s3.app.access import key_uses
from sluice_s3.app.access.key_uses import IAM, S3, KeyUses
from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.iam.rows import ACCOUNT, IDENTITY, KEY, ROLE, AccessKey, Identity, KeyOwner, Use


class Written:
    """An index that takes uses, or is busy."""

    def __init__(self) -> None:
        self.busy = False
        self.written = asyncio.Event()
        self.batches: list[Sequence[Use]] = []

    async def record_uses(self, uses: Sequence[Use], since: int) -> None:
        """Keep them."""
        if self.busy:
            raise StoreUnavailable(reason="busy")
        assert since == min(use.used for use in uses)
        self.batches.append(list(uses))
        self.written.set()


def key(name: str, **fields: Any) -> AccessKey:
    return AccessKey(name, "secret", "account", "name", False)._replace(**fields)


def session(name: str, identity: Identity | None) -> AccessKey:
    return key(name, token="token", holder=KeyOwner("account", identity, session="s"))


def places(uses: Sequence[Use]) -> list[tuple[str, str, str]]:
    return [(use.kind, use.subject, use.service) for use in uses]


async def test_the_first_use_in_an_interval_is_noted() -> None:
    index = Written()
    uses = KeyUses(index, "r")  # type: ignore[arg-type]
    await uses.flush()
    assert index.batches == [], "an idle gateway writes nothing"
    for service in (S3, IAM):
        uses.note(key("A"), service)
    await uses.flush()
    assert [places(batch) for batch in index.batches] == [[(KEY, "A", S3)]]
    assert index.batches[0][0].region == "r"
    await uses.flush()
    assert len(index.batches) == 1
    uses.note(key("A"), IAM)
    await uses.flush()
    assert places(index.batches[1]) == [(KEY, "A", IAM)]


async def test_a_temporary_key_counts_for_whose_it_is() -> None:
    index = Written()
    uses = KeyUses(index, "r")  # type: ignore[arg-type]
    role = Identity("AROA", "account", ROLE, "reader", "reader", "/", "{}", 0)
    for name, identity in (("ASIA1", role), ("ASIA2", role), ("ASIA3", None)):
        uses.note(session(name, identity), S3)
    await uses.flush()
    assert places(index.batches[0]) == [(IDENTITY, "AROA", S3), (ACCOUNT, "account", S3)]


async def test_uses_wait_for_a_busy_index(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Written()
    uses = KeyUses(index, "r")  # type: ignore[arg-type]
    monkeypatch.setattr(key_uses, "MAX_WRITTEN", 2)
    monkeypatch.setattr(key_uses, "MAX_KEYS", 3)
    index.busy = True
    for names in ("AB", "BC", "DE"):
        for name in names:
            uses.note(key(name), S3)
        with pytest.raises(StoreUnavailable):
            await uses.flush()
    index.busy = False
    await uses.flush()
    assert [[use.subject for use in batch] for batch in index.batches] == [["A", "B"], ["C"]], "bounded"


async def test_no_more_keys_than_a_process_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = KeyUses(Written(), "r")  # type: ignore[arg-type]
    monkeypatch.setattr(key_uses, "MAX_KEYS", 2)
    for name in "ABC":
        uses.note(key(name), S3)
    assert list(uses.recent) == ["A", "B"]


async def test_it_writes_each_interval_and_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Written()
    uses = KeyUses(index, "r")  # type: ignore[arg-type]
    monkeypatch.setattr(key_uses, "FLUSH_SECONDS", 0.01)
    uses.note(key("A"), S3)
    index.busy = True
    task = asyncio.create_task(uses.run())
    await asyncio.sleep(0.05)
    index.busy = False
    await asyncio.wait_for(index.written.wait(), 10)
    monkeypatch.setattr(key_uses, "FLUSH_SECONDS", 60)
    await asyncio.sleep(0.03)
    uses.note(key("B"), S3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [use.subject for batch in index.batches for use in batch] == ["A", "B"]
