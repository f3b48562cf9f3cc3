"""Transactions that are announced: declared with what became of keys, which they write to the outbox when asked to."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sluice_s3.app.index.declared_transactions import DeclaredTransactions
from sluice_s3.app.index.engine import outbox
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.engine.outbox import ObjectChange, OutboxTransaction
from sluice_s3.app.index.notifications.rows import NewMessage

WRITES = {name: one for name, one in vars(DeclaredTransactions).items() if isinstance(one, Write)}
ANNOUNCED = {
    "put_version",
    "copy_version",
    "delete_version",
    "delete_versions",
    "set_headers",
    "complete_upload",
    "expire",
    "reclass",
    "ask_restore",
    "append",
    "rename_object",
}


class EventBuilder:
    def messages(self, change: ObjectChange) -> Sequence[NewMessage]:
        return []


def test_what_changes_keys_is_declared_with_what_it_announces() -> None:
    assert {name for name, one in WRITES.items() if one.events is not None} == ANNOUNCED


@pytest.mark.parametrize("name", WRITES)
async def test_messages_are_written_within_emit_events_alone(name: str) -> None:
    one = WRITES[name]
    assert one.transaction() is one.function
    async with outbox.emit_events(EventBuilder()):
        assert isinstance(one.transaction(), OutboxTransaction) == (name in ANNOUNCED)
