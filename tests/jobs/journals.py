"""What the journals of a store say, replayed in the plainest way."""

from __future__ import annotations

from typing import Any

from app.settings import Settings
from app.store import decisions
from storage_drivers.objects.journals import Journals


def names(settings: Settings) -> list[int]:
    """Ids of all journals."""
    return sorted(int(path.stem, 16) for path in (settings.data / "data").glob("*/*.journal"))


def records(settings: Settings) -> list[tuple[decisions.Heading, dict[str, Any]]]:
    """All records of all journals."""
    data = settings.data / "data"
    reader = Journals(lambda number: f"{data}/{number & 0xFF:02x}/{number:016x}.journal", None)
    found = []
    for number in names(settings):
        for record in reader.read(number):
            assert record is not None
            found.append((decisions.heading(record), decisions.fields(record)))
    return found


def replayed(settings: Settings) -> dict[tuple[int, str], list[Any]]:
    """The current rows by bucket and key."""
    kept: dict[tuple[int, str], tuple[int, list[Any] | None]] = {}
    for _, fields in records(settings):
        for row in fields.get("versions", []):
            kept[row[1], row[2]] = max(kept.get((row[1], row[2]), (0, None)), (row[0], row))
        for seq, kind, bucket_id, key, *_ in fields.get("removals", []):
            if kind == "object":
                kept[bucket_id, key] = max(kept.get((bucket_id, key), (0, None)), (seq, None), key=lambda one: one[0])
    return {place: row for place, (_, row) in kept.items() if row is not None}
