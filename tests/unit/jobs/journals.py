"""What the journals of a store say, replayed in the plainest way."""

from __future__ import annotations

from typing import Any

from sluice_s3.app.settings import Settings
from sluice_s3.app.store.journals import encoding
from sluice_s3.storage_drivers.layout import ObjectsLayout
from sluice_s3.storage_drivers.objects.journals import Journals


def names(settings: Settings) -> list[int]:
    """Ids of all journals."""
    return sorted(int(path.stem, 16) for path in (settings.data / "journals").glob("*.journal"))


def records(settings: Settings) -> list[tuple[encoding.RecordHeader, dict[str, Any]]]:
    """All records of all journals."""
    reader = Journals(ObjectsLayout(settings.data), durable=False)
    found = []
    for number in names(settings):
        for record in reader.read(number):
            assert record is not None
            found.append((encoding.parse_header(record), encoding.decode(record)))
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
