"""Two accounts on an index, and short ways to call the operations of IAM and STS."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.access.account import account_number
from sluice_s3.app.access.iam.actions import Call
from sluice_s3.app.access.iam.errors import IamError
from sluice_s3.app.access.iam.parameters import Parameters
from sluice_s3.app.access.iam.service import IAM, RUN, STS
from sluice_s3.app.access.principal import build_principal
from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.index import SqliteIndex

OURS, THEIRS = "1" * 12, "b" * 64
ANYBODY = json.dumps(
    {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}}
)


def policy(*actions: str, resource: Any = "*", effect: str = "Allow", **fields: Any) -> str:
    """A policy of one statement."""
    statement = {"Effect": effect, "Action": list(actions), "Resource": resource} | fields
    return json.dumps({"Version": "2012-10-17", "Statement": statement})


def trusting(*arns: str, **fields: Any) -> str:
    """A trust policy."""
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": list(arns)}} | fields
    return json.dumps({"Version": "2012-10-17", "Statement": statement})


class Caller:
    """Whoever calls: an account with a key of its own, or the holder of a key."""

    def __init__(self, index: SqliteIndex, account_id: str, key: str = "", values: dict[str, str] | None = None):
        self.index = index
        self.account_id = account_id
        self.number = account_number(account_id)
        self.key = key
        self.given = values or {}

    async def __call__(self, action: str, service: str = IAM, **parameters: str) -> dict[str, Any]:
        """Call an operation. Raises IamError."""
        principal = None
        if self.key:
            found = await self.index.access_key(self.key)
            assert found is not None
            assert found.holder is not None
            principal = build_principal(found.holder)
        named = {name.replace("__", "."): value for name, value in parameters.items()}

        def values(key: str) -> tuple[str, ...] | None:
            return (self.given[key],) if key in self.given else None

        return await RUN[service](action, Call(self.index, self.account_id, principal, Parameters(named), values))

    async def sts(self, action: str, **parameters: str) -> dict[str, Any]:
        """The same of STS."""
        return await self(action, STS, **parameters)

    async def refused(self, code: str, action: str, service: str = IAM, **parameters: str) -> str:
        """Call what is refused with a code; returns the message."""
        with pytest.raises(IamError) as error:
            await self(action, service, **parameters)
        assert error.value.code == code, error.value.text
        return error.value.text

    async def user(self, name: str, *documents: str, path: str = "/") -> Caller:
        """Make a user with policies and a key; returns who calls with it."""
        await self("CreateUser", UserName=name, Path=path)
        for number, document in enumerate(documents):
            await self("PutUserPolicy", UserName=name, PolicyName=f"p{number}", PolicyDocument=document)
        made = await self("CreateAccessKey", UserName=name)
        return Caller(self.index, self.account_id, made["AccessKey"]["AccessKeyId"])


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new index, migrated once: each test begins with a copy."""
    path = tmp_path_factory.mktemp("template") / "sluice.db"
    migrate.upgrade(path, path.with_name("index.lock"))
    return path


@pytest.fixture
async def index(tmp_path: Path, template: Path) -> AsyncIterator[SqliteIndex]:
    (tmp_path / "run").mkdir()
    shutil.copy(template, tmp_path)
    opened = SqliteIndex(tmp_path / "sluice.db", tmp_path / "run", writer=False, durability="relaxed")
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def ours(index: SqliteIndex) -> Caller:
    """The first account."""
    await index.add_account(Account(OURS, "ours", "", False, 1000), "OURKEY", "secret")
    return Caller(index, OURS)


@pytest.fixture
async def theirs(index: SqliteIndex) -> Caller:
    """Another account."""
    await index.add_account(Account(THEIRS, "theirs", "", False, 2000), "THEIRKEY", "secret")
    return Caller(index, THEIRS)
