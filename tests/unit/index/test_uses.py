"""Last uses of keys, users, roles and accounts, on both engines."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.iam.rows import ACCOUNT, IDENTITY, KEY, ROLE, USER, Account, Identity, IdleKey, Use
from sluice_s3.app.index.iam.uses import SINCE
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OTHER, OWNER

DAY = 86_400_000
ROOT = Account(OWNER, "root", "root@example.com", False, 1000)
ANN = Account(OTHER, "Ann", "", False, 2000)


def person(name: str, kind: str = USER) -> Identity:
    return Identity(f"{kind}-{name}", OWNER, kind, name, name.lower(), "/", "{}", 5)


def used(subject: str, at: int, kind: str = KEY, account: str = OWNER) -> Use:
    return Use(kind, subject, account, at, "s3", "us-east-1")


@pytest.fixture
async def people(index: SqliteIndex) -> SqliteIndex:
    """Two accounts with a key each, and three users, two of them with a key."""
    await index.add_account(ROOT, "ROOTKEY", "secret")
    await index.add_account(ANN, "ANNKEY", "secret")
    for name in ("bob", "Cid", "dan"):
        await index.add_identity(person(name), 10)
    await index.add_key(OWNER, "user-bob", "BOBKEY", "secret", 2)
    await index.add_key(OWNER, "user-Cid", "CIDKEY", "secret", 2)
    return index


async def test_the_latest_use_is_kept(people: SqliteIndex) -> None:
    assert await people.last_use(KEY, "BOBKEY") is None
    assert await people.uses_since() == 0
    for at in (5000, 9000, 7000):
        await people.record_uses([used("BOBKEY", at)], at)
    assert await people.last_use(KEY, "BOBKEY") == used("BOBKEY", 9000)
    await people.record_uses([Use(KEY, "BOBKEY", OWNER, 9500, "iam", "eu-1")], 9500)
    assert await people.last_use(KEY, "BOBKEY") == Use(KEY, "BOBKEY", OWNER, 9500, "iam", "eu-1")
    assert await people.uses_since() == 5000


async def test_nothing_is_kept_of_what_is_gone(people: SqliteIndex) -> None:
    """A worker may write a use after the key was removed."""
    gone = [used("NOKEY", 5), used("user-eve", 5, IDENTITY), used("nobody", 5, ACCOUNT)]
    await people.record_uses(gone, 5)
    assert [await people.last_use(*one[:2]) for one in gone] == [None] * 3
    uses = [used("BOBKEY", 5), used("user-dan", 5, IDENTITY), used("ROOTKEY", 5), used("ANNKEY", 5, account=OTHER)]
    uses.append(used(OTHER, 5, ACCOUNT, OTHER))
    await people.record_uses(uses, 5)
    assert all([await people.last_use(*one[:2]) == one for one in uses])
    await people.remove_key(OWNER, "user-bob", "BOBKEY")
    await people.remove_identity(OWNER, USER, "dan", lambda _: None)
    await people.replace_keys(ROOT, "NEWKEY", "secret")
    await people.remove_account(OTHER)
    assert [await people.last_use(*one[:2]) for one in uses] == [None] * 5
    assert await people.last_use(*SINCE) is not None
    await people.add_key(OWNER, "user-bob", "BOBKEY", "secret", 2)
    assert await people.last_use(KEY, "BOBKEY") is None


async def test_keys_of_a_page_of_users(people: SqliteIndex) -> None:
    await people.record_uses([used("CIDKEY", 700), used("user-dan", 800, IDENTITY), used("BOBKEY", 900)], 5)
    found = await people.uses_of_users(OWNER, "bob", "cid")
    assert {name: [key.access_key for key in one.keys] for name, one in found.items()} == {
        "user-bob": ["BOBKEY"],
        "user-Cid": ["CIDKEY"],
    }
    assert (found["user-Cid"].keys[0].used, found["user-Cid"].keys[0].service) == (700, "s3")
    last = await people.uses_of_users(OWNER, "dan", "dan")
    assert (last["user-dan"].keys, last["user-dan"].used) == ([], 800)
    assert await people.uses_of_users(OTHER, "", "zz") == {}


async def test_pages_of_accounts(people: SqliteIndex) -> None:
    await people.add_identity(person("reader", ROLE), 10)
    await people.create_bucket("hers", OTHER, "r", 10)
    await people.record_uses([used("BOBKEY", 700), used("ANNKEY", 900, account=OTHER)], 5)
    first, second = await people.accounts_page((0, ""), 10)
    assert (first.account, [key.access_key for key in first.keys]) == (ROOT, ["ROOTKEY"])
    assert (first.identities, first.buckets, first.used) == ({USER: 3, ROLE: 1}, 0, 700)
    assert (second.account, second.keys[0].used, second.buckets, second.used) == (ANN, 900, 1, 900)
    assert [one.account for one in await people.accounts_page((0, ""), 1)] == [ROOT]
    assert [one.account for one in await people.accounts_page((ROOT.created, ROOT.id), 1)] == [ANN]
    assert await people.accounts_page((ANN.created, ANN.id), 1) == []


async def test_idle_keys(people: SqliteIndex) -> None:
    """Not those in use, disabled, or made when uses were not yet recorded."""
    now = now_ms()
    assert await people.idle_keys(now + DAY, 0, 10) == [], "nothing is recorded yet"
    await people.record_uses([used("BOBKEY", now - 200 * DAY), used("CIDKEY", now)], now - 200 * DAY)
    found = await people.idle_keys(now - 90 * DAY, 0, 10)
    assert [one.access_key for one in found] == ["BOBKEY"]
    assert found[0]._replace(created=0) == IdleKey("BOBKEY", OWNER, "root", "bob", 0, now - 200 * DAY)
    never = await people.idle_keys(now + DAY, 0, 10)
    assert {one.access_key for one in never} == {"ROOTKEY", "ANNKEY", "BOBKEY", "CIDKEY"}
    assert {one.access_key for one in never if not one.used} == {"ROOTKEY", "ANNKEY"}
    assert len(await people.idle_keys(0, now + DAY, 2)) == 2
    await people.set_key(OWNER, "user-bob", "BOBKEY", True)
    await people.set_disabled(OTHER, True)
    assert {one.access_key for one in await people.idle_keys(0, now + DAY, 10)} == {"ROOTKEY", "CIDKEY"}
