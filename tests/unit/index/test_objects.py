"""Objects: what put, copy and delete leave, and their conditions."""

import itertools

import pytest

from sluice_s3.app.errors import NoSuchKey, PreconditionFailed, SourceGone
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult
from sluice_s3.app.index.sql import transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.versioning.rows import Deletion
from tests.unit.index.tools import OWNER, Memory, new


async def bodies(index: SqliteIndex) -> list[str]:
    """The discard queue."""
    return [entry.body for entry in await index.discards(0, 100)]


async def test_a_version_is_what_was_put(index: SqliteIndex, bucket: Bucket) -> None:
    put = new("blob", size=9, etag="tag", headers='{"x-amz-meta-a":"ü"}', checksum="sum", parts=0)
    committed = await index.put_version(bucket.id, "key", put)
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert (found.seq, found.version_id, found.modified) == committed
    assert found.version_id == NULL_VERSION
    assert found.key == "key"
    described = {name: getattr(found, name) for name in put._fields}
    assert described == put._asdict()
    assert await index.version(bucket.id, "key", NULL_VERSION) == found


async def test_what_is_not_there_is_none(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "key", new())
    assert await index.version(bucket.id, "ke") is None
    assert await index.version(bucket.id, "key", "3HL4kqtJlcpXroDTDmJ") is None
    assert await index.version(bucket.id + 1, "key") is None
    assert await index.delete_version(bucket.id, "other") is None
    assert await index.delete_version(bucket.id, "key", "3HL4kqtJlcpXroDTDmJ") is None


async def test_an_overwrite_replaces_and_queues_the_old_body(index: SqliteIndex, bucket: Bucket) -> None:
    first = await index.put_version(bucket.id, "key", new("blob1"))
    second = await index.put_version(bucket.id, "key", new("blob2", etag="e2"))
    assert second.seq > first.seq
    assert second.modified > first.modified
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert (found.body, found.etag) == ("blob2", "e2")
    assert await bodies(index) == ["blob1"]
    assert len((await index.list_current(bucket.id, "", "", "", 10)).entries) == 1


async def test_empty_bodies_queue_nothing(index: SqliteIndex, bucket: Bucket) -> None:
    for _ in range(2):
        await index.put_version(bucket.id, "key", new())
    await index.delete_version(bucket.id, "key")
    assert await bodies(index) == []


async def test_a_delete_answers_what_it_removed(index: SqliteIndex, bucket: Bucket) -> None:
    committed = await index.put_version(bucket.id, "key", new("blob"))
    assert await index.delete_version(bucket.id, "key") == committed
    assert await index.version(bucket.id, "key") is None
    assert await bodies(index) == ["blob"]


async def test_modified_goes_up_for_a_key_even_when_the_clock_goes_back(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sluice_s3.app.index.buckets import transactions as buckets
    from sluice_s3.app.index.objects import transactions as objects

    bucket_id = memory.run(buckets.create_bucket("b", OWNER, "r", 10)).id
    clock = itertools.count(1_000_000, -1000)
    for module in (transaction, objects):
        monkeypatch.setattr(module, "now_ms", lambda: next(clock))
    times = [memory.run(objects.put_version(bucket_id, "k", new(), None)).modified for _ in range(3)]
    assert times == [1_000_000, 1_000_001, 1_000_002]


# conditions: what a write finds, what it asks, and what it must answer
MATCHING = Conditions(if_match="e1")
CASES: list[tuple[Conditions, type[Exception] | None, type[Exception] | None]] = [
    # conditions, with an object (etag e1, 4 bytes), without one
    (Conditions(), None, None),
    (MATCHING, None, NoSuchKey),
    (Conditions(if_match="*"), None, NoSuchKey),
    (Conditions(if_match="e2"), PreconditionFailed, NoSuchKey),
    (Conditions(if_none_match=True), PreconditionFailed, None),
    (Conditions(if_match="e1", if_none_match=True), PreconditionFailed, NoSuchKey),
    (Conditions(if_match_size=4), None, None),
    (Conditions(if_match_size=5), PreconditionFailed, None),
    (Conditions(if_match_size=0), PreconditionFailed, None),
    (Conditions(if_match_modified=0), PreconditionFailed, None),
    (Conditions(if_match="e1", if_match_size=5), PreconditionFailed, NoSuchKey),
]
WRITES = ["put", "copy", "delete", "delete many", "complete"]


async def write(index: SqliteIndex, bucket_id: int, how: str, conditions: Conditions) -> object:
    """One write to `key` under conditions."""
    if how == "put":
        return await index.put_version(bucket_id, "key", new("blob2", etag="e2"), conditions)
    if how == "copy":
        source = await index.put_version(bucket_id, "source", new("blob3"))
        return await index.copy_version(source.seq, bucket_id, "key", new(etag="e2"), conditions)
    if how == "delete":
        return await index.delete_version(bucket_id, "key", None, conditions)
    if how == "delete many":
        (answer,) = await index.delete_versions(bucket_id, [Deletion("key", None, conditions)])
        if isinstance(answer, Exception):
            raise answer
        return answer
    upload = await index.create_upload(bucket_id, "key", "{}", "STANDARD", "", "", OWNER)
    return await index.complete_upload(upload, [], new(etag="e2"), conditions)


@pytest.mark.parametrize("how", WRITES)
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize(("conditions", "with_object", "without"), CASES)
async def test_conditions(
    index: SqliteIndex,
    bucket: Bucket,
    how: str,
    exists: bool,
    conditions: Conditions,
    with_object: type[Exception] | None,
    without: type[Exception] | None,
) -> None:
    if exists:
        await index.put_version(bucket.id, "key", new("blob1"))
    before = await index.version(bucket.id, "key")
    expected = with_object if exists else without
    if expected is None:
        await write(index, bucket.id, how, conditions)
        assert await index.version(bucket.id, "key") != before or not exists
    else:
        with pytest.raises(expected):
            await write(index, bucket.id, how, conditions)
        assert await index.version(bucket.id, "key") == before
        assert await bodies(index) == []
    assert await index.miscounted() == []


async def test_modified_is_compared_by_seconds(index: SqliteIndex, bucket: Bucket) -> None:
    committed = await index.put_version(bucket.id, "key", new())
    second = committed.modified // 1000 * 1000
    with pytest.raises(PreconditionFailed):
        await index.delete_version(bucket.id, "key", None, Conditions(if_match_modified=second - 1))
    assert await index.delete_version(bucket.id, "key", None, Conditions(if_match_modified=second + 999)) == committed


async def test_a_failed_condition_names_its_header(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "key", new())
    with pytest.raises(PreconditionFailed) as caught:
        await index.put_version(bucket.id, "key", new(), Conditions(if_none_match=True))
    assert caught.value.detail == {"condition": "If-None-Match"}


async def test_each_deletion_is_answered_alone(index: SqliteIndex, bucket: Bucket) -> None:
    made = [await index.put_version(bucket.id, f"k{number}", new(f"blob{number}")) for number in range(3)]
    answers = await index.delete_versions(
        bucket.id,
        [
            Deletion("k0", None, Conditions()),
            Deletion("k1", None, Conditions(if_match="other")),
            Deletion("missing", None, Conditions()),
            Deletion("missing", None, Conditions(if_match="*")),
            Deletion("k2", NULL_VERSION, MATCHING),
            Deletion("k2", None, Conditions()),
        ],
    )
    assert answers[0] == made[0]
    assert isinstance(answers[1], PreconditionFailed)
    assert answers[2] is None
    assert isinstance(answers[3], NoSuchKey)
    assert answers[4] == made[2]
    assert answers[5] is None
    assert await bodies(index) == ["blob0", "blob2"]
    assert [entry.key for entry in (await index.list_current(bucket.id, "", "", "", 10)).entries] == ["k1"]


async def test_a_copy_shares_the_body_until_the_last_is_gone(index: SqliteIndex, bucket: Bucket) -> None:
    source = await index.put_version(bucket.id, "a", new("blob"))
    for key in ("b", "c"):
        await index.copy_version(source.seq, bucket.id, key, new("ignored", headers="{}"))
    copy = await index.version(bucket.id, "b")
    assert copy is not None
    assert (copy.body, copy.headers) == ("blob", "{}")
    for key in ("a", "b"):
        await index.delete_version(bucket.id, key)
        assert await bodies(index) == []
    await index.delete_version(bucket.id, "c")
    assert await bodies(index) == ["blob"]
    assert await index.miscounted() == []


async def test_a_copy_to_itself_keeps_the_body(index: SqliteIndex, bucket: Bucket) -> None:
    source = await index.put_version(bucket.id, "a", new("blob"))
    again = await index.copy_version(source.seq, bucket.id, "a", new(headers='{"new":"1"}'))
    found = await index.version(bucket.id, "a")
    assert found is not None
    assert (found.seq, found.body, found.headers) == (again.seq, "blob", '{"new":"1"}')
    assert await bodies(index) == []
    assert await index.miscounted() == []
    await index.delete_version(bucket.id, "a")
    assert await bodies(index) == ["blob"]


async def test_a_copy_of_a_replaced_version_is_refused(index: SqliteIndex, bucket: Bucket) -> None:
    source = await index.put_version(bucket.id, "a", new("blob"))
    await index.put_version(bucket.id, "a", new("blob2"))
    with pytest.raises(SourceGone):
        await index.copy_version(source.seq, bucket.id, "b", new())
    assert await index.version(bucket.id, "b") is None


async def test_keys_are_any_text(index: SqliteIndex, bucket: Bucket) -> None:
    keys = ["\0", "a\0b", " ", "../..", "ключ", "\U0001f600", "\U0010ffff" * 256, "%2F", "a" * 1024]
    made: dict[str, CommitResult] = {}
    for key in keys:
        made[key] = await index.put_version(bucket.id, key, new())
    for key in keys:
        found = await index.version(bucket.id, key)
        assert found is not None
        assert (found.key, found.seq) == (key, made[key].seq)
    listed = [entry.key for entry in (await index.list_current(bucket.id, "", "", "", 100)).entries]
    assert listed == sorted(keys, key=str.encode)


async def test_what_was_discarded_is_forgotten(index: SqliteIndex, bucket: Bucket) -> None:
    await index.put_version(bucket.id, "key", new("old"))
    await index.put_version(bucket.id, "key", new("blob"))
    (entry,) = await index.discards(0, 100)
    await index.forget_discards([(entry.id, 0, 0)])
    assert await bodies(index) == []


async def test_the_backlog_is_a_stores_own(index: SqliteIndex, bucket: Bucket) -> None:
    assert await index.discard_backlog("default") == (0, 0)
    for body in ("f:01", "p:1.40.80.2", "fast/f:03", "faster/f:04"):
        await index.put_version(bucket.id, body, new(body))
        await index.delete_version(bucket.id, body)
    upload = await index.create_upload(bucket.id, "k", "{}", "STANDARD", "", "", OWNER)
    await index.abort_upload(upload)
    queued = await index.discards(0, 100)
    first = min(entry.queued for entry in queued)
    assert len(queued) == 5
    await index.quarantine_orphans(["f:05", "fast/f:06"], first + 3600_000)
    counts = {name: await index.discard_backlog(name) for name in ("default", "fast", "faster", "fas")}
    assert {name: count for name, (count, _) in counts.items()} == {"default": 3, "fast": 1, "faster": 1, "fas": 0}
    assert counts["default"][1] == first
