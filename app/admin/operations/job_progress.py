"""How far the jobs are that move or read much, and what the checks among them found."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
from pydantic import BaseModel, Field

from sluice_s3.app.admin.store_health.parts import READ_KINDS, count_scrubbed
from sluice_s3.app.index import Index
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.scrub_progress import read_progress

MOST_MOVES = 20
"""Moves whose progress an answer has."""


class ProgressOut(BaseModel):
    """How far a job is with one thing, in rows; a check also counts blobs."""

    what: str
    done: int
    total: int | None = Field(description="Null: not known.")


async def read_moves(index: Index) -> list[ProgressOut]:
    """Return how far the moves of buckets are. Raises DomainError."""
    found = []
    for bucket in (await index.moving())[:MOST_MOVES]:
        progress = orjson.loads(await index.note(f"move:{bucket.id}") or "{}")
        what = f"{bucket.name}: {bucket.source} → {bucket.store}"
        found.append(ProgressOut(what=what, done=progress.get("rows", 0), total=progress.get("of")))
    return found


async def read_scrub_pass(index: Index, store: str) -> list[ProgressOut]:
    """Return how far the scrubber of a store is, nothing between two passes. Raises DomainError."""
    progress = await read_progress(index, store)
    if progress.position is None:
        return []
    done, total = await count_scrubbed(index, store, progress)
    return [ProgressOut(what=f"Reading {READ_KINDS[progress.kind]}", done=done, total=total)]


async def count_damaged(index: Index) -> Counter[str]:
    """Return how many damaged blobs each store has. Raises DomainError."""
    return Counter(store_of_locator(locator) for locator, _, _ in await index.quarantine())


def describe_check(line: dict[str, Any], last: dict[str, Any] | None) -> list[ProgressOut]:
    """Return how far a check is, by its last line of progress, and by what the report of the last one counted."""
    if "what" in line:
        return [ProgressOut(what=line["what"].capitalize(), done=line["done"], total=line["total"] or None)]
    done = line.get("looked", 0)
    total = last["rows"] + last["blobs"] if last and "rows" in last else 0
    return [ProgressOut(what="Comparing rows and blobs", done=done, total=total if done <= total and total else None)]
