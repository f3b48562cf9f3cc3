"""Users, groups, roles, their keys and sessions, on both engines."""

from __future__ import annotations

import pytest

from sluice_s3.app.errors import (
    AccountExists,
    IdentityExists,
    IdentityInUse,
    NoSuchIdentity,
    TooManyIdentities,
)
from sluice_s3.app.index.iam.rows import GROUP, POLICY, ROLE, USER, Account, Identity, KeyOwner, Session, UserKey
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OTHER, OWNER

ACCOUNT = Account(OWNER, "root", "root@example.com", False, 1000)


def made(kind: str, name: str, account_id: str = OWNER, path: str = "/") -> Identity:
    return Identity(f"{kind}-{account_id[0]}-{name}", account_id, kind, name, name.lower(), path, "{}", 5)


def nothing(_: Identity) -> None:
    """Nothing speaks against it."""


@pytest.fixture
async def account(index: SqliteIndex) -> Account:
    await index.add_account(ACCOUNT, "ROOTKEY", "root-secret")
    return ACCOUNT


async def test_one_is_found_by_its_name_in_any_case(index: SqliteIndex) -> None:
    ann = made(USER, "Ann")
    await index.add_identity(ann, 10)
    assert await index.identity(OWNER, USER, "aNN") == ann
    assert await index.identity(OWNER, ROLE, "Ann") is None
    assert await index.identity(OTHER, USER, "Ann") is None


async def test_a_name_is_one_in_any_case(index: SqliteIndex) -> None:
    await index.add_identity(made(USER, "Ann"), 10)
    with pytest.raises(IdentityExists):
        await index.add_identity(made(USER, "ANN"), 10)
    await index.add_identity(made(ROLE, "Ann"), 10)
    await index.add_identity(made(USER, "Ann", OTHER), 10)
    assert [one.account_id for one in await index.identities_named(USER, "ann")] == [OWNER, OTHER]


async def test_no_more_than_so_many(index: SqliteIndex) -> None:
    await index.add_identity(made(USER, "a"), 1)
    with pytest.raises(TooManyIdentities):
        await index.add_identity(made(USER, "b"), 1)
    assert await index.count_identities(OWNER, USER) == 1


async def test_a_page_is_in_the_order_of_names_and_of_one_path(index: SqliteIndex) -> None:
    for name, path in (("Bob", "/x/"), ("ann", "/x/y/"), ("Cid", "/z/"), ("dan", "/x/")):
        await index.add_identity(made(USER, name, path=path), 10)
    everyone = await index.identities_of(OWNER, USER, "/", "", 10)
    assert [one.name for one in everyone] == ["ann", "Bob", "Cid", "dan"]
    assert [one.name for one in await index.identities_of(OWNER, USER, "/x", "", 2)] == ["ann", "Bob"]
    assert [one.name for one in await index.identities_of(OWNER, USER, "/x", "bob", 2)] == ["dan"]


async def test_a_change_may_give_it_another_name(index: SqliteIndex) -> None:
    await index.add_identity(made(USER, "a"), 10)
    await index.add_identity(made(USER, "b"), 10)
    changed = await index.change_identity(OWNER, USER, "A", lambda old: old._replace(name="New", document='{"x":1}'))
    assert changed == await index.identity(OWNER, USER, "new")
    assert changed.folded == "new"
    with pytest.raises(IdentityExists):
        await index.change_identity(OWNER, USER, "b", lambda old: old._replace(name="NEW"))
    with pytest.raises(NoSuchIdentity):
        await index.change_identity(OWNER, USER, "a", lambda old: old)


async def test_policies_of_a_user_and_of_its_groups_come_with_the_key(index: SqliteIndex, account: Account) -> None:
    ann, staff = made(USER, "ann"), made(GROUP, "staff")
    own, shared, unused = (made(POLICY, name) for name in ("own", "shared", "unused"))
    for one in (ann, staff, own, shared, unused):
        await index.add_identity(one, 10)
    await index.join_group(OWNER, ("user", "ann"), ("group", "staff"), 2)
    await index.join_group(OWNER, ("user", "ann"), ("policy", "own"), 1)
    await index.join_group(OWNER, ("group", "staff"), ("policy", "shared"), 1)
    await index.add_key(OWNER, ann.id, "ANNKEY", "secret", 2)
    found = await index.access_key("ANNKEY")
    assert found is not None
    assert found.holder is not None
    assert found.holder.groups == (staff, own, shared)
    assert await index.groups_of(ann.id) == [staff]
    assert await index.groups_of(ann.id, "policy") == [own]
    with pytest.raises(TooManyIdentities):
        await index.join_group(OWNER, ("user", "ann"), ("policy", "unused"), 1)
    with pytest.raises(IdentityInUse):
        await index.remove_identity(OWNER, POLICY, "own", nothing)
    await index.leave_group(OWNER, ("user", "ann"), ("policy", "own"))
    await index.remove_identity(OWNER, POLICY, "own", nothing)


async def test_groups_of_a_user(index: SqliteIndex) -> None:
    ann, staff, club = made(USER, "ann"), made(GROUP, "staff"), made(GROUP, "club")
    for one in (ann, staff, club):
        await index.add_identity(one, 10)
    await index.join_group(OWNER, ("user", "ann"), ("group", "Staff"), 2)
    await index.join_group(OWNER, ("user", "ann"), ("group", "club"), 2)
    await index.join_group(OWNER, ("user", "ann"), ("group", "club"), 2)
    assert await index.groups_of(ann.id) == [club, staff]
    assert await index.members_of(staff.id) == [ann]
    await index.add_identity(made(GROUP, "third"), 10)
    with pytest.raises(TooManyIdentities):
        await index.join_group(OWNER, ("user", "ann"), ("group", "third"), 2)
    await index.leave_group(OWNER, ("user", "ann"), ("group", "staff"))
    assert await index.members_of(staff.id) == []
    for user, group in (("ann", "staff"), ("bob", "club"), ("ann", "none")):
        with pytest.raises(NoSuchIdentity):
            await index.leave_group(OWNER, ("user", user), ("group", group))


async def test_what_is_in_use_is_not_removed(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    await index.add_identity(made(GROUP, "staff"), 10)
    await index.join_group(OWNER, ("user", "ann"), ("group", "staff"), 2)
    for kind, name in ((USER, "ann"), (GROUP, "staff")):
        with pytest.raises(IdentityInUse):
            await index.remove_identity(OWNER, kind, name, nothing)
    await index.leave_group(OWNER, ("user", "ann"), ("group", "staff"))
    await index.add_key(OWNER, ann.id, "ANNKEY", "s", 2)
    with pytest.raises(IdentityInUse):
        await index.remove_identity(OWNER, USER, "ann", nothing)
    await index.remove_key(OWNER, ann.id, "ANNKEY")

    def refuse(_: Identity) -> None:
        raise IdentityInUse(what="policy")

    with pytest.raises(IdentityInUse):
        await index.remove_identity(OWNER, USER, "ann", refuse)
    await index.remove_identity(OWNER, USER, "ann", nothing)
    assert await index.identity(OWNER, USER, "ann") is None


async def test_a_users_key_tells_the_user_with_his_groups(index: SqliteIndex, account: Account) -> None:
    ann, staff = made(USER, "ann"), made(GROUP, "staff")
    await index.add_identity(ann, 10)
    await index.add_identity(staff, 10)
    await index.join_group(OWNER, ("user", "ann"), ("group", "staff"), 2)
    key = await index.add_key(OWNER, ann.id, "ANNKEY", "ann-secret", 2)
    found = await index.access_key("ANNKEY")
    assert found is not None
    assert (found.secret, found.account_id, found.disabled) == ("ann-secret", OWNER, False)
    assert found.holder == KeyOwner(OWNER, ann, (staff,))
    assert await index.keys_of(OWNER, ann.id) == [UserKey("ANNKEY", False, key.created)]
    own = await index.access_key("ROOTKEY")
    assert own is not None
    assert own.holder is None
    assert [[one.access_key for one in keys] for _, keys in await index.accounts()] == [["ROOTKEY"]]


async def test_keys_are_disabled_each_for_itself_or_with_the_account(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    await index.add_key(OWNER, ann.id, "ANNKEY", "s", 2)

    async def disabled() -> bool:
        key = await index.access_key("ANNKEY")
        assert key is not None
        return key.disabled

    await index.set_key(OWNER, ann.id, "ANNKEY", True)
    assert await disabled()
    await index.set_key(OWNER, ann.id, "ANNKEY", False)
    assert not await disabled()
    await index.set_disabled(OWNER, True)
    assert await disabled()


async def test_a_secret_is_replaced_with_the_state_of_its_key(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    added = await index.add_key(OWNER, ann.id, "ANNKEY", "old", 2)
    for secret, disabled in (("new", True), ("newer", False)):
        await index.set_secret(OWNER, ann.id, "ANNKEY", secret, disabled)
        found = await index.access_key("ANNKEY")
        assert found is not None
        assert (found.secret, found.disabled) == (secret, disabled)
        assert await index.keys_of(OWNER, ann.id) == [UserKey("ANNKEY", disabled, added.created)]


async def test_a_key_is_only_its_owners(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    await index.add_key(OWNER, ann.id, "ANNKEY", "s", 2)
    for account_id, whose, key in ((OWNER, "", "ANNKEY"), (OTHER, ann.id, "ANNKEY"), (OWNER, ann.id, "ROOTKEY")):
        with pytest.raises(NoSuchIdentity):
            await index.remove_key(account_id, whose, key)
        with pytest.raises(NoSuchIdentity):
            await index.set_key(account_id, whose, key, True)
        with pytest.raises(NoSuchIdentity):
            await index.set_secret(account_id, whose, key, "s", True)
    with pytest.raises(AccountExists):
        await index.add_key(OWNER, ann.id, "ROOTKEY", "s", 2)
    with pytest.raises(NoSuchIdentity):
        await index.add_key(OWNER, "nobody", "KEY", "s", 2)
    await index.add_key(OWNER, "", "SECOND", "s", 2)
    with pytest.raises(TooManyIdentities):
        await index.add_key(OWNER, "", "THIRD", "s", 2)


async def test_new_keys_of_the_account_leave_those_of_its_users(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    await index.add_key(OWNER, ann.id, "ANNKEY", "s", 2)
    await index.replace_keys(account, "NEWROOT", "s")
    assert await index.access_key("ROOTKEY") is None
    assert await index.access_key("ANNKEY") is not None
    with pytest.raises(AccountExists):
        await index.replace_keys(account, "ANNKEY", "s")


def session(key: str, identity: str, created: int = 1_000_000_000, expires: int = 2_000_000_000) -> Session:
    return Session(key, "secret", "token", OWNER, identity, "name", "[]", created, expires)


async def test_a_session_tells_its_role(index: SqliteIndex, account: Account) -> None:
    role = made(ROLE, "reader")
    await index.add_identity(role, 10)
    await index.add_session(session("ASIA1", role.id), 10)
    found = await index.access_key("ASIA1")
    assert found is not None
    assert (found.secret, found.token, found.expires, found.display_name) == ("secret", "token", 2_000_000_000, "root")
    assert found.holder == KeyOwner(OWNER, role, (), "name", "[]", 1_000_000_000)
    await index.remove_identity(OWNER, ROLE, "reader", nothing)
    assert await index.access_key("ASIA1") is None


async def test_a_session_of_the_account_itself(index: SqliteIndex, account: Account) -> None:
    await index.add_session(session("ASIA1", ""), 10)
    found = await index.access_key("ASIA1")
    assert found is not None
    assert found.holder == KeyOwner(OWNER, None, (), "name", "[]", 1_000_000_000)
    await index.set_disabled(OWNER, True)
    found = await index.access_key("ASIA1")
    assert found is not None
    assert found.disabled


async def test_old_sessions_are_forgotten_and_new_ones_bounded(index: SqliteIndex, account: Account) -> None:
    day = 86_400_000
    await index.add_session(session("ASIA1", "", 0, 1000), 2)
    await index.add_session(session("ASIA2", "", day, day + 1000), 2)
    assert await index.access_key("ASIA1") is not None
    await index.add_session(session("ASIA3", "", day, day + 2000), 2)
    assert await index.access_key("ASIA1") is None, "it ended, and its place was needed"
    with pytest.raises(TooManyIdentities):
        await index.add_session(session("ASIA4", "", day + 999, day + 3000), 2)
    await index.add_session(session("ASIA4", "AIDAOTHER", day + 999, day + 3000), 2)
    await index.add_session(session("ASIA5", "", day + 1000, day + 3000), 2)
    assert await index.access_key("ASIA2") is None
    await index.add_session(session("ASIA6", "", 2 * day + 2001, 2 * day + 3000), 9)
    assert await index.access_key("ASIA3") is None, "it ended more than a day ago"


async def test_a_removed_account_takes_all_along(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    await index.add_identity(ann, 10)
    await index.add_identity(made(GROUP, "staff"), 10)
    await index.join_group(OWNER, ("user", "ann"), ("group", "staff"), 2)
    await index.add_key(OWNER, ann.id, "ANNKEY", "s", 2)
    await index.add_session(session("ASIA1", ann.id), 10)
    await index.remove_account(OWNER)
    assert await index.access_key("ANNKEY") is None
    assert await index.access_key("ASIA1") is None
    assert await index.identity(OWNER, USER, "ann") is None
    assert await index.groups_of(ann.id) == []


async def test_caches_hear_of_every_change_but_of_a_new_session(index: SqliteIndex, account: Account) -> None:
    ann = made(USER, "ann")
    seen = [index.generation]
    for change in (
        lambda: index.add_identity(ann, 10),
        lambda: index.add_identity(made(GROUP, "staff"), 10),
        lambda: index.join_group(OWNER, ("user", "ann"), ("group", "staff"), 2),
        lambda: index.leave_group(OWNER, ("user", "ann"), ("group", "staff")),
        lambda: index.change_identity(OWNER, USER, "ann", lambda old: old._replace(path="/x/")),
        lambda: index.add_key(OWNER, ann.id, "ANNKEY", "s", 2),
        lambda: index.set_key(OWNER, ann.id, "ANNKEY", True),
        lambda: index.set_secret(OWNER, ann.id, "ANNKEY", "t", False),
        lambda: index.remove_key(OWNER, ann.id, "ANNKEY"),
        lambda: index.remove_identity(OWNER, USER, "ann", nothing),
    ):
        await change()
        seen.append(index.generation)
    assert seen == sorted(set(seen))
    for number in range(5):  # what was changed last may be heard of again, from Postgres
        before = index.generation
        await index.add_session(session(f"ASIA{number}", ""), 10)
        if index.generation == before:
            return
    pytest.fail("it is told of each new session")
