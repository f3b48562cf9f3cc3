"""An init file: what it makes at the start, that it is idempotent, and what is refused before anything is made."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from typer.testing import CliRunner

from sluice_s3.app.access.iam.documents import attached, policies
from sluice_s3.app.cli.main import cli
from sluice_s3.app.index.interface import Index
from sluice_s3.app.init_file.apply import apply_document, compare_document
from sluice_s3.app.init_file.changes import InitError
from sluice_s3.app.init_file.document import read_init_file
from sluice_s3.app.init_file.planned_bucket import settings_of
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart, open_store, prepare
from tests.support.settings import make_settings

T = TypeVar("T")

EVERYTHING = """
[policies]
read = { Version = "2012-10-17", Statement = [{ Effect = "Allow", Action = "s3:GetObject", Resource = "*" }] }
write = "write.json"

[groups.readers]
policies = ["read"]

[users.alice]
path = "/people/"
groups = ["readers"]
policies = ["write", "AmazonS3ReadOnlyAccess"]
keys = [{ access_key = "ALICEKEY", secret_key_env = "ALICE_SECRET", disabled = true }]

[accounts.backup]
keys = [
  { access_key = "BACKUPKEY", secret_key_file = "backup.secret" },
  { access_key = "SECOND", secret_key = "0123456789" },
]
users.bob.keys = [{ access_key = "BOBKEY", secret_key = "0123456789" }]

[buckets.photos]
object_lock = { Mode = "GOVERNANCE", Days = 1 }
ownership = "ObjectWriter"
public_access_block = false
tags = { team = "web" }
quota = { bytes = 1_000_000 }
policy = { Version = "2012-10-17", Statement = [
  { Effect = "Allow", Principal = "*", Action = "s3:GetObject", Resource = "arn:aws:s3:::photos/*" } ] }

[[buckets.photos.lifecycle]]
Status = "Enabled"
Filter = { And = { Prefix = "tmp/", Tags = [{ Key = "a", Value = "b" }] } }
Expiration = { Date = 2040-01-01 }

[[buckets.photos.cors]]
AllowedMethods = ["GET", "PUT"]
AllowedOrigins = ["https://example.com"]

[buckets.dumps]
account = "backup"
versioning = "Suspended"
policy = { Version = "2012-10-17", Statement = [
  { Effect = "Allow",Principal = { CanonicalUser = "OF-BACKUP" }, Action = "s3:*", Resource = "arn:aws:s3:::dumps" } ] }
""".replace("OF-BACKUP", hashlib.sha256(b"account:backup").hexdigest())


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALICE_SECRET", "alice-secret")
    (tmp_path / "backup.secret").write_text("backup-secret\n")
    (tmp_path / "write.json").write_text(
        '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:PutObject", "Resource": "*"}]}'
    )
    found = tmp_path / "init.toml"
    found.write_text(EVERYTHING)
    return found


def _look(settings: Settings, ask: Callable[[Index], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_store(settings) as store:
            return await ask(store.index)

    return asyncio.run(run())


def _differences(settings: Settings, path: Path, *, write: bool = False) -> list[str]:
    async def run() -> list[str]:
        async with open_store(settings) as store:
            play = apply_document if write else compare_document
            return [change.where for change in await play(settings, store, read_init_file(path), path)]

    return asyncio.run(run())


def test_a_start_makes_all_of_it_and_the_next_one_nothing(tmp_path: Path, path: Path) -> None:
    settings = make_settings(tmp_path, init_file=path)
    prepare(settings)

    async def check(index: Index) -> None:
        alice, bob = await index.access_key("ALICEKEY"), await index.access_key("BOBKEY")
        backup = await index.access_key("BACKUPKEY")
        assert alice is not None
        assert alice.holder is not None
        assert alice.holder.identity is not None
        assert (alice.secret, alice.disabled, alice.holder.identity.path) == ("alice-secret", True, "/people/")
        assert set(policies(alice.holder.identity)) == {"write"}
        assert attached(alice.holder.identity) == ["arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"]
        assert [set(policies(group)) for group in alice.holder.groups] == [{"read"}]
        assert backup is not None
        assert bob is not None
        assert (backup.secret, bob.account_id) == ("backup-secret", backup.account_id)
        photos, dumps = await index.bucket("photos"), await index.bucket("dumps")
        assert photos is not None
        assert dumps is not None
        assert (photos.owner_id, dumps.owner_id) == (alice.account_id, backup.account_id)
        assert dumps.versioning == 2
        found = settings_of(photos)
        assert found["object_lock"] == ["GOVERNANCE", 1, 0]
        assert found["lifecycle"]["rules"][0]["id"] == "rule-1"
        assert found["quota"] == {"bytes": 1_000_000, "objects": None}
        assert (found["ownership"], found["tags"]) == ("ObjectWriter", {"team": "web"})
        assert found.keys() >= {"policy", "public_access_block", "cors"}

    _look(settings, check)
    assert _differences(settings, path) == []
    prepare(settings)
    assert _differences(settings, path, write=True) == []


def test_what_differs_is_named_and_nothing_else_is_changed(tmp_path: Path, path: Path) -> None:
    settings = make_settings(tmp_path, init_file=path)
    prepare(settings)

    async def by_hand(index: Index) -> None:
        photos = await index.bucket("photos")
        assert photos is not None
        await index.configure_bucket(photos.id, "payer", "Requester")
        await index.create_bucket("by-hand", photos.owner_id, "us-east-1", 100)

    _look(settings, by_hand)
    (tmp_path / "backup.secret").write_text("another-secret")
    path.write_text(EVERYTHING.replace('team = "web"', 'team = "api"').replace("disabled = true", "disabled = false"))
    expected = ["users.alice.keys.ALICEKEY.disabled", "accounts.backup.keys.BACKUPKEY", "buckets.photos.tags"]
    assert _differences(settings, path) == expected
    assert _differences(settings, path, write=True) == expected
    assert _differences(settings, path) == []

    async def check(index: Index) -> None:
        photos, backup = await index.bucket("photos"), await index.access_key("BACKUPKEY")
        assert photos is not None
        assert backup is not None
        assert settings_of(photos)["payer"] == "Requester"
        assert backup.secret == "another-secret"
        assert await index.bucket("by-hand") is not None

    _look(settings, check)


def test_all_is_missing_before_it_is_made(tmp_path: Path, path: Path) -> None:
    settings = make_settings(tmp_path)
    prepare(settings)
    found = _differences(settings, path)
    assert {"groups.readers", "users.alice", "accounts.backup", "accounts.backup.users.bob", "buckets.photos"} <= {
        *found
    }
    assert {"users.alice.keys.ALICEKEY", "accounts.backup.keys.SECOND", "buckets.dumps.policy"} <= {*found}
    assert _differences(settings, path) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[bucket.a]", r"there is no key 'bucket' \(did you mean 'buckets'\?\)"),
        ("[buckets.photos]\nversionning = 'Enabled'", "buckets.photos: there is no key 'versionning' .*'versioning'"),
        ("[buckets.photos]\nversioning = 'on'", "buckets.photos.versioning: Input should be 'Enabled' or 'Suspended'"),
        ("[buckets.A]", "'A' is no bucket name"),
        ("[buckets.photos]\naccount = 'x'", "there is no 'x' in accounts"),
        ("[users.a]\npolicies = ['raed']\n[policies]\nread = {}", r"no 'raed' in policies \(did you mean 'read'\?\)"),
        ("[users.a]\nkeys = [{ access_key = 'KEY' }]", "give one of secret_key_file, secret_key_env and secret_key"),
        ("[users.a]\nkeys = [{ access_key = 'KEY', secret_key_env = 'NO' }]", "the secret of KEY in NO is missing"),
        ("[users.a]\nkeys = [{ access_key = 'KEY', secret_key_file = 'no' }]", "no: No such file or directory"),
        ("[accounts.a]\nkeys = []", "accounts.a.keys: List should have at least 1 item"),
        ("buckets = [", "init.toml: Invalid value"),
        ("[policies]\nread = 'no.json'", "no.json: No such file"),
    ],
)
def test_a_file_that_cannot_be_meant_stops_the_start(tmp_path: Path, path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(CannotStart, match=message):
        prepare(make_settings(tmp_path, init_file=path))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cors = [{ AllowedMethod = ['GET'] }]", r"CORSRule: there is no key 'AllowedMethod' .*'AllowedMethods'"),
        (
            "cors = [{ AllowedMethods = ['FETCH'], AllowedOrigins = ['*'] }]",
            "buckets.photos.cors: InvalidRequest: .*FETCH",
        ),
        ("lifecycle = [{ Status = 'Enabled' }]", "buckets.photos.lifecycle: InvalidRequest: At least one action"),
        ("policy = { Version = '2012-10-17' }", "buckets.photos.policy: MalformedPolicy"),
        ("store = 'none'", "there is no store 'none' in the settings"),
    ],
)
def test_what_s3_refuses_stops_the_start_with_its_message(tmp_path: Path, path: Path, text: str, message: str) -> None:
    path.write_text(f"[buckets.photos]\n{text}")
    with pytest.raises(CannotStart, match=message):
        prepare(make_settings(tmp_path, init_file=path))


def test_a_key_of_another_is_refused(tmp_path: Path, path: Path) -> None:
    settings = make_settings(tmp_path)
    prepare(settings)
    path.write_text("[users.a]\nkeys = [{ access_key = 'ROOTKEY', secret_key = 'a-secret-of-a' }]")
    with pytest.raises(InitError, match=r"another account or user has the access key ROOTKEY") as caught:
        _differences(settings, path)
    assert "a-secret-of-a" not in str(caught.value)


def test_the_commands_tell_by_their_exit_codes(tmp_path: Path, path: Path) -> None:
    prepare(make_settings(tmp_path))
    where = ["--data", str(tmp_path / "data"), "--file", str(path)]
    run = CliRunner().invoke
    path.write_text("[buckets.photos]\ntags.team = 'web'")
    assert (run(cli, ["init", "check", *where])).exit_code == 1
    applied = run(cli, ["init", "apply", *where])
    assert applied.exit_code == 0
    assert re.findall(r"^buckets\S+", applied.stdout, re.M) == ["buckets.photos", "buckets.photos.tags"]
    assert run(cli, ["init", "check", *where]).exit_code == 0
    path.write_text("[bucket]")
    assert run(cli, ["init", "check", *where]).exit_code == 2
    assert run(cli, ["init", "check", *where[:2]]).exit_code == 2
