"""What lifecycle rules take away goes only as it was judged."""

from __future__ import annotations

import orjson
import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.lifecycle.queries import COLUMNS, ROWS_PER_BATCH, ScanPosition, scan_start
from sluice_s3.app.index.lifecycle.rows import LONE, OBJECT, OLDER, ExpireEntry
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, Lock
from sluice_s3.app.index.objects.listing import successor
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, NONCURRENT, SUSPENDED
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.test_versions import discarded, states
from tests.unit.index.tools import new, part

FAR = 4_102_444_800_000


def expired(made: CommitResult, kind: tuple[int, ...] = OBJECT, key: str = "key") -> ExpireEntry:
    return ExpireEntry(key, made.version_id, made.seq, kind)


async def test_an_object_goes_as_by_delete(index: SqliteIndex, bucket: Bucket) -> None:
    first = await index.put_version(bucket.id, "key", new("blob"))
    other = await index.put_version(bucket.id, "other", new("else"))
    assert await index.expire(bucket.id, "", [expired(first)]) == [True]
    assert await index.version(bucket.id, "key") is None
    assert await discarded(index) == ["blob"]
    assert orjson.loads((await index.changes(0)).removals)[0][3] == "key"
    assert await index.expire(bucket.id, "", [expired(first), expired(other, key="other")]) == [False, True]


async def test_what_was_written_meanwhile_stays(index: SqliteIndex, bucket: Bucket) -> None:
    judged = await index.put_version(bucket.id, "key", new("blob"))
    await index.put_version(bucket.id, "key", new("newer", etag="e2"))
    assert await index.expire(bucket.id, "", [expired(judged)]) == [False]
    kept = await index.version(bucket.id, "key")
    assert kept is not None
    assert kept.etag == "e2"
    seq = await index.set_headers(bucket.id, "key", kept.seq, '{"tags":{"keep":"1"}}')
    assert await index.expire(bucket.id, "", [ExpireEntry("key", "null", kept.seq, OBJECT)]) == [False]
    assert await index.expire(bucket.id, "", [ExpireEntry("key", "null", seq, OBJECT)]) == [True]


async def test_nothing_goes_by_rules_that_are_no_more(index: SqliteIndex, bucket: Bucket) -> None:
    made = await index.put_version(bucket.id, "key", new("blob"))
    upload = await index.create_upload(bucket.id, "key", "{}", "STANDARD", "", "", "owner")
    await index.configure_bucket(bucket.id, "lifecycle", {"rules": []})
    assert await index.expire(bucket.id, "", [expired(made)]) is None
    assert await index.expire_uploads(bucket.id, "", [upload.id]) is None
    (found,) = await index.lifecycle_buckets()
    assert await index.expire_uploads(bucket.id, found.settings, [upload.id, upload.id, 1 << 40]) == 1
    assert await index.expire(bucket.id, found.settings, [expired(made)]) == [True]
    assert await index.upload(bucket.id, "key", upload.upload_id) is None


@pytest.mark.parametrize("versioning", [ENABLED, SUSPENDED])
async def test_where_versions_are_kept_a_marker_is_made(index: SqliteIndex, bucket: Bucket, versioning: int) -> None:
    made = await index.put_version(bucket.id, "key", new("blob"))
    await index.set_versioning(bucket.id, versioning)
    assert await index.expire(bucket.id, "", [expired(made)]) == [True]
    kept = [("e1", NONCURRENT)] if versioning == ENABLED else []
    assert await states(index, bucket) == [("", MARKER), *kept]


async def test_older_versions_and_lone_markers(index: SqliteIndex, bucket: Bucket) -> None:
    await index.set_versioning(bucket.id, ENABLED)
    made = [await index.put_version(bucket.id, "key", new(f"b{number}", etag=f"e{number}")) for number in range(2)]
    marker = await index.delete_version(bucket.id, "key")
    assert marker is not None
    lone = ExpireEntry("key", marker.version_id, marker.seq, LONE)
    assert await index.expire(bucket.id, "", [lone]) == [False]  # something is under it
    assert await index.expire(bucket.id, "", [expired(made[1], OBJECT)]) == [False]  # a marker is
    assert await index.expire(bucket.id, "", [expired(made[0], OLDER)]) == [True]
    await index.delete_version(bucket.id, "key", marker.version_id)
    assert await states(index, bucket) == [("e1", CURRENT)]
    assert await index.expire(bucket.id, "", [expired(made[1], OLDER)]) == [False]  # it is current again
    marker = await index.delete_version(bucket.id, "key")
    assert marker is not None
    lone = ExpireEntry("key", marker.version_id, marker.seq, LONE)
    assert await index.expire(bucket.id, "", [expired(made[1], OLDER), lone]) == [True, True]
    assert await states(index, bucket) == []
    assert await discarded(index) == ["b0", "b1"]


async def test_what_is_locked_stays(index: SqliteIndex, bucket: Bucket) -> None:
    await index.set_versioning(bucket.id, ENABLED)
    made = await index.put_version(bucket.id, "key", new("blob"))
    lock = orjson.dumps({object_lock.LOCK: list(Lock(COMPLIANCE, FAR))}).decode()
    seq = await index.set_headers(bucket.id, "key", made.seq, lock)
    assert await index.expire(bucket.id, "", [expired(made._replace(seq=seq))]) == [True]  # a marker takes its place
    other = await index.put_version(bucket.id, "other", new("else"))
    await index.delete_version(bucket.id, "other")
    entries = [expired(made._replace(seq=seq), OLDER), expired(other, OLDER, "other")]
    assert await index.expire(bucket.id, "", entries) == [False, True]
    assert ("e1", NONCURRENT) in await states(index, bucket)


async def test_pages_go_through_every_version_once(index: SqliteIndex, bucket: Bucket) -> None:
    await index.set_versioning(bucket.id, ENABLED)
    for number in range(ROWS_PER_BATCH + 20):
        await index.put_version(bucket.id, "many", new(f"m{number}"))
    for number in range(30):
        await index.put_version(bucket.id, f"p/{number:03}", new(f"s{number}", headers='{"tags":{}}'))
    await index.delete_version(bucket.id, "p/003")
    found = []
    place: ScanPosition | None = scan_start("")
    while place is not None:
        rows, place = await index.lifecycle_page(bucket.id, place, successor(""), tags=False)
        found += rows
    page = await index.list_versions(bucket.id, "", "", "", "", 1_000_000)
    assert [(row[1], row[2], row[3]) for row in found] == [(one.key, one.version_id, one.state) for one in page.entries]
    assert {row[len(COLUMNS)] for row in found} == {""}
    rows, place = await index.lifecycle_page(bucket.id, scan_start("p/"), successor("p/"), tags=True)
    assert place is None
    assert (len(rows), {row[len(COLUMNS)] for row in rows}) == (31, {'{"tags":{}}', "{}"})


async def test_uploads_that_are_completed_stay(index: SqliteIndex, bucket: Bucket) -> None:
    upload = await index.create_upload(bucket.id, "key", "{}", "STANDARD", "", "", "owner")
    await index.put_part(upload, part(1, "blob"))
    chosen = await index.parts(upload, 0, 10)
    await index.complete_upload(upload, chosen, new())
    assert await index.expire_uploads(bucket.id, "", [upload.id]) == 0
    assert await discarded(index) == []
