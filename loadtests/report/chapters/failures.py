"""Errors with their counts and first messages."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.loadtests.report.document import Block, Cell, Table
from sluice_s3.loadtests.report.model import Model


def errors(model: Model, scenario: str) -> list[Block]:
    """Render the errors with their counts and first ten messages."""
    rows: list[list[str | Cell]] = []
    for one in model.errors:
        if one.scenario == scenario:
            counts = counted([message.text for message in one.first])
            rows.append([one.operation, one.target, counts, Cell(f"{one.count:,}", "bad")])
    head = ["Operation", "Target", "the first ten by time", "errors"]
    return [Table(head, rows, "Errors", "", 3)] if rows else []


def counted(messages: Sequence[str]) -> str:
    """Return messages with their counts."""
    found = {text: messages.count(text) for text in dict.fromkeys(messages)}
    return "; ".join(f"{text} ({count}x)" if count > 1 else text for text, count in found.items())
