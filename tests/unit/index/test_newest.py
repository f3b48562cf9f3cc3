"""Keys that have not exactly one newest version are found, and set right."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.engine.lock_keys import global_lock
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, NONCURRENT, OLD_MARKER
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.versioning.statements import SET_STATE
from tests.unit.index.test_versions import states
from tests.unit.index.tools import new


def set_states(wanted: Sequence[tuple[int, int]]) -> Transaction[None]:
    for seq, state in wanted:
        yield SET_STATE, (state, seq)


@pytest.mark.parametrize("marker", [False, True])
async def test_found_and_set_right(index: SqliteIndex, bucket: Bucket, marker: bool) -> None:
    await index.set_versioning(bucket.id, ENABLED)
    for key in ("good", "none", "old", "two"):
        for number in range(3):
            await index.put_version(bucket.id, key, new(f"{key}{number}", etag=f"e{number}"))
        if marker:
            await index.delete_version(bucket.id, key)
    assert await index.newest_wrong() == []
    seqs = {
        key: [(await index.version(bucket.id, key, entry.version_id)).seq for entry in page.entries]  # type: ignore[union-attr]
        for key in ("none", "old", "two")
        for page in [await index.list_versions(bucket.id, key, "", "", "", 10)]
    }
    older = OLD_MARKER if marker else NONCURRENT
    wrong = [(seqs["none"][0], older), (seqs["old"][0], older), (seqs["old"][1], CURRENT)]
    if marker:  # Postgres lets no key have two current objects
        wrong.append((seqs["two"][1], CURRENT))
    await index._commit(Write(set_states, locks=global_lock), (wrong,))
    found = await index.newest_wrong()
    broken = ["none", "old", "two"] if marker else ["none", "old"]
    assert found == [(bucket.id, key, "bucket", "default") for key in broken]
    for key in broken:
        await index.mend_newest(bucket.id, key)
    assert await index.newest_wrong() == []
    newest = [("", MARKER), ("e2", NONCURRENT)] if marker else [("e2", CURRENT)]
    for key in ("good", "none", "old", "two"):
        assert await states(index, bucket, key) == [*newest, ("e1", NONCURRENT), ("e0", NONCURRENT)]
