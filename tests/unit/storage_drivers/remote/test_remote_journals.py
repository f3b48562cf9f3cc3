"""Journals on a remote place: what is damaged is told from what ended too soon."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient
from sluice_s3.storage_drivers.fsspec.journals import RemoteJournals
from sluice_s3.storage_drivers.packs import format

WRITTEN = [JournalRecord(number, b"claim", b"body %d" % number) for number in range(3)]


@pytest.mark.parametrize(
    ("at", "found"),
    [
        (20, [None]),
        (format.PACK_HEADER + 5, [None, *WRITTEN[1:]]),
        (format.PACK_HEADER + format.RECORD_HEADER, [None, *WRITTEN[1:]]),
    ],
    ids=["header", "head of a record", "claim of a record"],
)
def test_damage_in_the_last_batch(tmp_path: Path, at: int, found: list[JournalRecord | None]) -> None:
    journals = RemoteJournals(FsspecClient(f"file://{tmp_path}", {}, 1))
    path = Path(journals.path(7, 0))
    path.parent.mkdir()
    journals.append(7, WRITTEN)
    assert list(journals.read(7)) == WRITTEN
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    assert list(journals.read(7)) == found
    path.write_bytes(content[:30])
    assert list(journals.read(7)) == []
