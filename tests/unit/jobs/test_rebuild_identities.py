"""Users, groups, roles and keys come back with the accounts; sessions do not, so that clients get new ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.index.iam.rows import GROUP, ROLE, USER, Account, Identity, Session
from sluice_s3.app.index.schema.tables import access_keys
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import writing
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.store.site import opened, prepare

ACCOUNT = Account("ours", "ours", "", False, 1000)
POLICY = '{"policies":{"p":"{}"}}'


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


def made(kind: str, name: str) -> Identity:
    return Identity(f"id-{name}", ACCOUNT.id, kind, name, name, "/x/", POLICY, 5)


async def test_identities_come_back(settings: Settings) -> None:
    ann, staff, role = made(USER, "ann"), made(GROUP, "staff"), made(ROLE, "reader")
    async with writing(settings) as store:
        index = store.index
        await index.add_account(ACCOUNT, "OURKEY", "secret")
        for one in (ann, staff, role):
            await index.add_identity(one, 10)
        await index.join_group(ACCOUNT.id, ("user", "ann"), ("group", "staff"), 10)
        await index.add_identity(made("policy", "reads"), 10)
        await index.join_group(ACCOUNT.id, ("group", "staff"), ("policy", "reads"), 10)
        await index.add_key(ACCOUNT.id, ann.id, "ANNKEY", "ann-secret", 2)
        await index.set_key(ACCOUNT.id, ann.id, "ANNKEY", True)
        await index.add_session(Session("ASIA1", "s", "t", ACCOUNT.id, role.id, "one", "[]", 0, 1 << 50), 10)
        before = await index.access_key("ANNKEY")
        await JournalWriter(store).run_once()
    lose_index(settings)
    rebuilt(settings)
    async with opened(settings) as store:
        index = store.index
        assert await index.access_key("ANNKEY") == before
        assert before is not None
        assert before.disabled
        assert before.holder is not None
        assert before.holder.groups == (staff, made("policy", "reads"))
        assert await index.groups_of(ann.id) == [staff]
        assert await index.identity(ACCOUNT.id, ROLE, "READER") == role
        own = await index.access_key("OURKEY")
        assert own is not None
        assert own.holder is None
        assert await index.access_key("ASIA1") is None


def test_keys_of_older_journals_are_their_accounts_own() -> None:
    """They have no column that tells whose a key is."""
    from sluice_s3.app.index.tools.rebuild import COLUMN_DEFAULTS

    *_, last = access_keys.c.keys()
    assert (last, COLUMN_DEFAULTS[last]) == ("identity", "")
