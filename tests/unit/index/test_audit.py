"""The audit log: events are written in the transaction of their change, read newest first, and removed."""

from __future__ import annotations

import time

import orjson
import pytest

from sluice_s3.app.errors import BucketAlreadyOwnedByYou, NoSuchIdentity
from sluice_s3.app.index.audit.rows import AuditEvent, AuditFilter
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.declared_transactions import DeclaredTransactions
from sluice_s3.app.index.engine.audit_trail import MAX_STATE, AuditTrail, audited, name_change
from sluice_s3.app.index.engine.declared import AuditedWrite, Write
from sluice_s3.app.index.iam.rows import POLICY, USER, Account, Identity
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER

ADMINISTRATIVE = {
    "add_account", "replace_keys", "remove_account", "set_disabled", "add_identity", "change_identity",
    "remove_identity", "join_group", "leave_group", "add_key", "set_key", "set_secret", "remove_key", "add_session",
    "create_bucket", "configure_bucket", "set_versioning", "set_object_lock", "delete_bucket", "configure_messages",
    "remove_session", "begin_move", "turn_back", "change_keyring", "change_note",
}  # fmt: skip


def trail(action: str = "s3:PutBucketTagging", **fields: str) -> AuditTrail:
    return AuditTrail("s3", action, principal="arn:aws:iam::1:user/ann", **fields)


async def events(index: SqliteIndex, **wanted: object) -> list[AuditEvent]:
    return (await index.audit_events(AuditFilter(**wanted), None, 100)).events  # type: ignore[arg-type]


def identity(name: str, kind: str = USER, document: str = "{}") -> Identity:
    return Identity(f"id-{name}", OWNER, kind, name, name.lower(), "/", document, 1)


def test_what_changes_settings_and_identities_is_audited() -> None:
    found = {name: one for name, one in vars(DeclaredTransactions).items() if isinstance(one, Write)}
    assert {name for name, one in found.items() if isinstance(one, AuditedWrite)} == ADMINISTRATIVE
    assert all(one.transaction() is one.function for one in found.values())


async def test_a_change_tells_who_and_what_it_was_before(index: SqliteIndex, bucket: Bucket) -> None:
    await index.configure_bucket(bucket.id, "tags", {"a": "1"})
    assert await events(index) == []  # nobody asked for it
    before = time.time_ns() // 1_000_000
    with audited(trail(resource="arn:aws:s3:::bucket", address="192.0.2.1", request_id="R1")):
        await index.configure_bucket(bucket.id, "tags", {"a": "2"})
        await index.configure_bucket(bucket.id, "tags", None)
    second, first = await events(index)
    assert first[2:11] == (
        "arn:aws:iam::1:user/ann", "", "", "192.0.2.1", "s3", "s3:PutBucketTagging", "arn:aws:s3:::bucket", "Success",
        "R1",
    )  # fmt: skip
    assert before <= first.at <= second.at
    assert orjson.loads(first.detail) == {"before": {"tags": {"a": "1"}}, "after": {"tags": {"a": "2"}}}
    assert orjson.loads(second.detail) == {"before": {"tags": {"a": "2"}}}


async def test_a_change_that_fails_leaves_no_event(index: SqliteIndex, bucket: Bucket) -> None:
    with audited(trail()) as made:
        with pytest.raises(BucketAlreadyOwnedByYou):
            await index.create_bucket("bucket", OWNER, "us-east-1", 10)
        with pytest.raises(NoSuchIdentity):
            await index.change_identity(OWNER, USER, "nobody", lambda one: one)
    assert not made.written
    assert await events(index) == []


async def test_states_of_buckets_and_identities_have_no_secret(index: SqliteIndex) -> None:
    with audited(trail()) as made:
        await index.add_account(Account(OWNER, "one", "a@b.c", False, 1), "AKONE", "very-secret")
        await index.create_bucket("made", OWNER, "us-east-1", 10)
        found = await index.bucket("made")
        assert found is not None
        await index.set_versioning(found.id, 1)
        await index.set_object_lock(found.id, ())
        await index.add_identity(identity("Ann", document='{"policies": {"p": "{\\"Statement\\": []}"}}'), 10)
        await index.add_identity(identity("p", POLICY), 10)
        await index.join_group(OWNER, (USER, "ann"), (POLICY, "p"), 10)
        await index.add_key(OWNER, "id-Ann", "AKTWO", "very-secret", 2)
        await index.set_secret(OWNER, "id-Ann", "AKTWO", "very-secret", True)
        await index.change_identity(OWNER, USER, "ann", lambda one: one._replace(name="Bob"))
        name_change("s3:DeleteBucket", "arn:aws:s3:::made")
        await index.delete_bucket(found.id)
    assert made.written
    details = [orjson.loads(one.detail) for one in reversed(await events(index))]
    assert b"very-secret" not in orjson.dumps(details)
    bucket = {"name": "made", "owner": OWNER, "region": "us-east-1", "store": "default", "settings": {}}
    assert details[1] == {"after": {**bucket, "versioning": "Disabled"}}
    assert details[2] == {"before": {"versioning": "Disabled"}, "after": {"versioning": "Enabled"}}
    assert details[4]["after"]["policies"] == {"p": {"Statement": []}}
    assert details[6] == {"before": {"user": "ann", "policy": []}, "after": {"user": "ann", "policy": ["p"]}}
    assert details[8] == {
        "before": {"access_key": "AKTWO", "status": "Active"},
        "after": {"access_key": "AKTWO", "status": "Inactive"},
    }
    assert (details[9]["before"]["name"], details[9]["after"]["name"]) == ("Ann", "Bob")
    (newest, *_) = await events(index)
    assert (newest.action, newest.resource) == ("s3:DeleteBucket", "arn:aws:s3:::made")
    assert "after" not in orjson.loads(newest.detail)


async def test_a_long_state_is_told_by_its_size_and_a_nul_is_no_text(index: SqliteIndex, bucket: Bucket) -> None:
    with audited(trail(resource="a\0b")):
        await index.configure_bucket(bucket.id, "policy", "x" * MAX_STATE)
        await index.configure_bucket(bucket.id, "policy", "a\0b")
    second, first = await events(index)
    assert orjson.loads(first.detail) == {"after": {"omitted_bytes": MAX_STATE + len('{"policy":""}')}}
    assert orjson.loads(second.detail)["after"] == {"policy": "a\ufffdb"}
    assert first.resource == "ab"


async def test_queries_filter_and_page(index: SqliteIndex) -> None:
    new = [trail(f"s3:Action{number % 3}", resource=f"arn:aws:s3:::b{number}").event() for number in range(20)]
    await index.add_audit_events(new)
    await index.add_audit_events([trail("iam:DeleteUser", resource="x[1]").event("AccessDenied")])
    found, place = [], None
    for _ in range(4):
        page = await index.audit_events(AuditFilter(action="S3:action1"), place, 3)
        found += page.events
        place = page.next
        if place is None:
            break
    assert [one.resource for one in found] == [f"arn:aws:s3:::b{number}" for number in (19, 16, 13, 10, 7, 4, 1)]
    assert place is None
    assert [one.action for one in await events(index, outcome="Access*")] == ["iam:DeleteUser"]
    assert [one.action for one in await events(index, outcome="!success")] == ["iam:DeleteUser"]
    assert len(await events(index, resource="*x[1]")) == 1
    assert len(await events(index, resource="arn:aws:s3:::b1?")) == 10
    assert await events(index, principal="*/bob") == []
    now = time.time_ns() // 1_000_000
    assert len(await events(index, until=now + 1)) == 21
    assert await events(index, since=now + 60_000) == []
    assert await events(index, until=now - 60_000) == []


async def test_old_events_go_and_refusals_displace_no_changes(index: SqliteIndex) -> None:
    await index.add_audit_events([trail(resource=str(number)).event() for number in range(5)])
    await index.add_audit_events([trail(resource=str(number)).event("AccessDenied") for number in range(5)])
    assert await index.old_audit_events(0, 5, 5) == []
    await index.forget_audit_events(await index.old_audit_events(0, 5, 2))
    left = [(one.outcome, one.resource) for one in await events(index)]
    assert left == [("AccessDenied", "4"), ("AccessDenied", "3"), *(("Success", str(n)) for n in (4, 3, 2, 1, 0))]
    await index.forget_audit_events(await index.old_audit_events(time.time_ns() // 1_000_000 + 1, 5, 5))
    assert await events(index) == []
