"""Accounts, keys, identity, and the generation that tells caches of a change."""

import pytest

from sluice_s3.app.errors import AccountExists, NoSuchAccount
from sluice_s3.app.index.iam.rows import AccessKey, Account
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OTHER, OWNER

ROOT = Account(OWNER, "root", "root@example.com", False, 1000)
ANN = Account(OTHER, "Ann", "ann@example.com", False, 2000)


async def test_an_account_and_its_keys_are_found(index: SqliteIndex) -> None:
    await index.add_account(ROOT, "KEY1", "secret1")
    await index.add_account(ROOT, "KEY2", "secret2")
    await index.add_account(ANN, "KEY3", "secret3")
    assert await index.account(OWNER) == ROOT
    assert await index.access_key("KEY2") == AccessKey("KEY2", "secret2", OWNER, "root", False)
    listed = [(account, {key.access_key for key in keys}) for account, keys in await index.accounts()]
    assert listed == [(ROOT, {"KEY1", "KEY2"}), (ANN, {"KEY3"})]


async def test_unknown_ones_are_none(index: SqliteIndex) -> None:
    assert await index.account(OWNER) is None
    assert await index.access_key("KEY") is None
    assert await index.accounts() == []


async def test_a_taken_key_or_email_is_refused_and_adds_nothing(index: SqliteIndex) -> None:
    await index.add_account(ROOT, "KEY1", "secret1")
    with pytest.raises(AccountExists):
        await index.add_account(ANN, "KEY1", "other")
    with pytest.raises(AccountExists):
        await index.add_account(ANN._replace(email=ROOT.email), "KEY2", "other")
    assert [account for account, _ in await index.accounts()] == [ROOT]


async def test_two_accounts_without_email(index: SqliteIndex) -> None:
    await index.add_account(ROOT._replace(email=""), "KEY1", "s")
    await index.add_account(ANN._replace(email=""), "KEY2", "s")
    assert len(await index.accounts()) == 2


async def test_a_disabled_account_disables_its_keys_until_enabled(index: SqliteIndex) -> None:
    await index.add_account(ROOT, "KEY1", "secret1")
    for disabled in (True, False):
        await index.set_disabled(OWNER, disabled)
        key, account = await index.access_key("KEY1"), await index.account(OWNER)
        assert key is not None
        assert account is not None
        assert (key.disabled, account.disabled) == (disabled, disabled)


async def test_a_removed_account_takes_its_keys_along(index: SqliteIndex) -> None:
    await index.add_account(ROOT, "KEY1", "secret1")
    await index.remove_account(OWNER)
    assert await index.access_key("KEY1") is None
    assert await index.account(OWNER) is None


async def test_changes_of_no_account_are_refused(index: SqliteIndex) -> None:
    with pytest.raises(NoSuchAccount):
        await index.remove_account(OWNER)
    with pytest.raises(NoSuchAccount):
        await index.set_disabled(OWNER, True)


async def test_replace_keys_leaves_exactly_one(index: SqliteIndex) -> None:
    for key in ("KEY1", "KEY2", "KEY2"):
        await index.replace_keys(ROOT, key, f"secret of {key}")
    assert await index.access_key("KEY1") is None
    assert await index.access_key("KEY2") == AccessKey("KEY2", "secret of KEY2", OWNER, "root", False)


async def test_replace_keys_enables_the_account(index: SqliteIndex) -> None:
    await index.add_account(ROOT, "KEY1", "s")
    await index.set_disabled(OWNER, True)
    await index.replace_keys(ROOT, "KEY1", "s")
    found = await index.access_key("KEY1")
    assert found is not None
    assert not found.disabled


async def test_replace_keys_takes_no_other_accounts_key(index: SqliteIndex) -> None:
    await index.add_account(ANN, "KEY1", "s")
    with pytest.raises(AccountExists):
        await index.replace_keys(ROOT, "KEY1", "s")
    assert await index.account(OWNER) is None


async def test_the_generation_goes_up_with_every_change_that_caches_must_see(index: SqliteIndex) -> None:
    seen = [index.generation]
    await index.add_account(ROOT, "KEY1", "s")
    seen.append(index.generation)
    await index.set_disabled(OWNER, True)
    seen.append(index.generation)
    await index.replace_keys(ROOT, "KEY2", "s")
    seen.append(index.generation)
    bucket = await index.create_bucket("bucket", OWNER, "r", 10)
    seen.append(index.generation)
    await index.delete_bucket(bucket.id)
    seen.append(index.generation)
    await index.remove_account(OWNER)
    seen.append(index.generation)
    assert seen == sorted(set(seen))


async def test_a_refused_change_does_not_bump_the_generation(index: SqliteIndex) -> None:
    before = index.generation
    with pytest.raises(NoSuchAccount):
        await index.remove_account(OWNER)
    assert index.generation == before


async def test_identity_is_kept(index: SqliteIndex) -> None:
    assert await index.identities() == {}
    await index.set_identity("6d1f5ad0", 1)
    await index.set_identity("6d1f5ad0", 2)
    await index.set_identity("77aa00bb", 1, "slow")
    assert await index.identities() == {"default": ("6d1f5ad0", 2), "slow": ("77aa00bb", 1)}
