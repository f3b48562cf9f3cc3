"""Several indexes on one database: what was serial on SQLite keeps its meaning."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson
import pytest

from sluice_s3.app.errors import BucketNotEmpty, DomainError, NoSuchBucket, PreconditionFailed, SourceGone
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.postgres import group_commit
from sluice_s3.app.index.postgres.advisory_locks import GLOBAL_LOCK
from sluice_s3.app.index.postgres.index import PostgresIndex
from tests.support.environment import sized
from tests.support.waiting import eventually_async
from tests.unit.index.tools import OTHER, OWNER, new, part

pytestmark = pytest.mark.slow

ROUNDS = sized(20, 500)


async def settle(*calls: Any) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_one_of_many_creators_wins(one: PostgresIndex, other: PostgresIndex, bucket: Bucket) -> None:
    condition = Conditions(if_none_match=True)
    for number in range(ROUNDS):
        answers = await settle(
            *(
                index.put_version(bucket.id, f"key{number}", new(f"{number}-{racer}"), condition)
                for racer in range(16)
                for index in (one, other)
            )
        )
        won = [answer for answer in answers if not isinstance(answer, Exception)]
        assert len(won) == 1
        assert {type(answer) for answer in answers if isinstance(answer, Exception)} == {PreconditionFailed}
        found = await one.version(bucket.id, f"key{number}")
        assert found is not None
        assert found.seq == won[0].seq


async def test_version_order_is_the_order_of_the_sequence(
    one: PostgresIndex, other: PostgresIndex, bucket: Bucket
) -> None:
    """Who comes later has the greater number and the later time, whoever it is."""
    seen: list[tuple[int, int]] = []
    for number in range(ROUNDS):
        made = await settle(
            *(index.put_version(bucket.id, "key", new(f"{number}{index.incarnation}")) for index in (one, other))
        )
        found = await one.version(bucket.id, "key")
        assert found is not None
        assert found.seq == max(answer.seq for answer in made)
        assert found.modified == max(answer.modified for answer in made)
        seen.append((found.seq, found.modified))
    assert seen == sorted(set(seen))


async def test_a_delete_is_no_older_than_what_it_deletes(
    one: PostgresIndex, other: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By whatever clock: what a rebuilt index has of it tells by that what is deleted."""
    made = await one.put_version(bucket.id, "key", new("body"))
    monkeypatch.setattr(group_commit, "now_ms", lambda: made.modified - 2000)
    await other.delete_version(bucket.id, "key")
    ((_, kind, _, key, at, *_),) = orjson.loads((await one.changes(0)).removals)
    assert (kind, key, at) == ("object", "key", made.modified)


@pytest.mark.parametrize("seed", range(sized(2, 20)))
async def test_counts_stay_true(one: PostgresIndex, other: PostgresIndex, bucket: Bucket, seed: int) -> None:
    """Copies, overwrites, deletes, parts and Completes of few keys through both; nothing held is ever discarded."""
    choose = random.Random(seed)
    blobs = iter(range(1 << 30))

    async def act(index: PostgresIndex) -> None:
        key = f"key{choose.randrange(4)}"
        source = await index.version(bucket.id, f"key{choose.randrange(4)}")
        what = choose.randrange(7)
        if what == 0:
            await index.put_version(bucket.id, key, new(f"blob{next(blobs)}"))
        elif what == 1:
            await index.delete_version(bucket.id, key)
        elif what in (2, 3) and source is not None:
            await index.copy_version(source.seq, bucket.id, key, new(size=source.size))
        elif what == 4:
            upload = await index.create_upload(bucket.id, key, "{}", "STANDARD", "", "", OWNER)
            await settle(*(index.put_part(upload, part(n, f"blob{next(blobs)}")) for n in (1, 2, 2)))
            if source is not None and not source.body.startswith("pieces:"):
                copied = part(3, source.body)
                await index.copy_part(source.seq, upload, copied)
            chosen = await index.parts(upload, 0, 10)
            await settle(
                index.complete_upload(upload, chosen, new(size=1, parts=len(chosen))),
                index.abort_upload(upload),
                index.complete_upload(upload, chosen, new(size=1, parts=len(chosen))),
            )
        elif what == 5:
            for entry in await index.discards(0, 100):
                if entry.body.startswith("pieces:"):
                    await index.expand_discard(entry, 2)
        else:
            await index.delete_versions(bucket.id, [])

    for _ in range(ROUNDS):
        for error in await settle(*(act(index) for index in (one, other) for _ in range(6))):
            assert error is None or isinstance(error, SourceGone | DomainError), repr(error)
            if isinstance(error, DomainError):
                assert type(error).__name__ in ("SourceGone", "NoSuchUpload", "InvalidPart"), repr(error)
        assert await one.miscounted() == []


async def test_a_bucket_is_deleted_or_written_to(one: PostgresIndex, other: PostgresIndex) -> None:
    for number in range(ROUNDS):
        bucket = await one.create_bucket(f"bucket-{number}", OWNER, "us-east-1", 10_000)
        put, deleted = await settle(other.put_version(bucket.id, "key", new("blob")), one.delete_bucket(bucket.id))
        if deleted is None:
            assert isinstance(put, NoSuchBucket)
        else:
            assert isinstance(deleted, BucketNotEmpty)
            assert await one.version(bucket.id, "key") is not None


async def test_one_of_two_makes_the_bucket(one: PostgresIndex, other: PostgresIndex) -> None:
    for number in range(ROUNDS):
        calls = (one.create_bucket(f"b{number}", OWNER, "r", 9999), other.create_bucket(f"b{number}", OTHER, "r", 9999))
        answers = await settle(*calls)
        assert sum(not isinstance(answer, Exception) for answer in answers) == 1


async def test_many_deletes_of_the_same_keys(one: PostgresIndex, other: PostgresIndex, bucket: Bucket) -> None:
    from sluice_s3.app.index.versioning.rows import Deletion

    keys = [f"key{number}" for number in range(300)]
    await asyncio.gather(*(one.put_version(bucket.id, key, new(f"blob of {key}")) for key in keys))
    entries = [Deletion(key, None, Conditions()) for key in keys]
    answers = await settle(
        one.delete_versions(bucket.id, entries), other.delete_versions(bucket.id, list(reversed(entries)))
    )
    gone = [answer for answer in answers[0] if answer] + [answer for answer in answers[1] if answer]
    assert len(gone) == len(keys)
    bodies = [entry.body for entry in await one.discards(0, 1000)]
    assert sorted(bodies) == sorted(f"blob of {key}" for key in keys)


async def test_a_change_is_told_to_the_others(one: PostgresIndex, other: PostgresIndex) -> None:
    before = other.generation
    await one.add_account(Account(OWNER, "name", "", False, 0), "KEY", "secret")
    await eventually_async(lambda: other.generation != before, seconds=10)
    assert one.generation > 0


async def test_what_is_seen_in_order_is_settled(one: PostgresIndex, other: PostgresIndex, bucket: Bucket) -> None:
    """A number that was drawn and is not committed holds back all behind it."""
    late = await other.database.connect()
    await late.execute("BEGIN")
    await late.execute(f"SELECT pg_advisory_xact_lock_shared({GLOBAL_LOCK})")
    number = (await late.fetchval("SELECT nextval('commit_sequence')")) << 20
    await late.execute("INSERT INTO discards VALUES ($1::bigint, 'late', 0)", number)
    await one.put_version(bucket.id, "key", new("early"))
    await one.delete_version(bucket.id, "key")
    seen = asyncio.create_task(one.discards(0, 10))
    changes = asyncio.create_task(one.changes(0))
    await asyncio.sleep(0.2)
    assert not seen.done()
    await late.execute("COMMIT")
    assert [entry.body for entry in await seen] == ["late", "early"]
    assert (await changes).until > number
    await late.close()


async def test_a_stopped_gateway_holds_nobody_up_for_ever(one: PostgresIndex, opens: Any, bucket: Bucket) -> None:
    """Its transaction holds locks; Postgres ends it once it is idle too long."""
    stopped = await one.database.connect()
    await stopped.execute("BEGIN")
    await stopped.execute(f"SELECT pg_advisory_xact_lock_shared({GLOBAL_LOCK})")
    await stopped.execute("SET LOCAL idle_in_transaction_session_timeout = '1s'")
    await one.delete_bucket(bucket.id)  # wants to be alone
    stopped.terminate()


async def test_through_a_pooler_nothing_is_kept_in_the_session(opens: Any) -> None:
    index: PostgresIndex = opens(pooler=True)
    await index.start()
    bucket = await index.create_bucket("bucket", OWNER, "us-east-1", 10)
    await asyncio.gather(*(index.put_version(bucket.id, f"k{number % 7}", new(f"b{number}")) for number in range(50)))
    await index.put_version(bucket.id, "k1", new("b"), Conditions(if_match="*"))
    assert len((await index.list_current(bucket.id, "", "", "", 100)).rows) == 7
    connection = await index._writes.acquire()
    assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements") <= 1  # the one that asks
    index._writes.release(connection)
    await index.close()
