"""The key ring: sealed by the master key, changed, and opened again."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import sys
from pathlib import Path

import orjson
import pytest
from pydantic import SecretStr, ValidationError

from sluice_s3.app.encryption import master_key
from sluice_s3.app.encryption.envelope import unwrap
from sluice_s3.app.encryption.keyring import OF_KMS, OF_S3, KeyRing, RingError, load_keyring, parse_ring_number
from sluice_s3.app.errors import KeyDisabled, KeyUnavailable
from sluice_s3.app.private_files import create_secret
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.encryption import keyring

MASTER, OTHER = bytes(32), bytes(31) + b"\1"


def test_a_ring_is_sealed_and_opened() -> None:
    ring = KeyRing.new(7).with_new_key("one", 8)
    text = ring.seal(MASTER)
    found = load_keyring(text, MASTER)
    assert (found.number, found.keys) == (2, ring.keys)
    assert list(found.keys) == [OF_S3, OF_KMS, "one"]
    assert parse_ring_number(text) == 2
    assert parse_ring_number("") == 0
    for version in (one for key in ring.keys.values() for one in key.versions):
        assert version.secret.hex() not in text
        assert base64.b64encode(version.secret).decode() not in text
        assert version.secret.hex() not in repr(version)
    assert text != ring.seal(MASTER), "with a nonce of its own each time"


def test_another_master_key_does_not_open_it() -> None:
    with pytest.raises(RingError, match="another master key"):
        load_keyring(KeyRing.new(1).seal(MASTER), OTHER)


@pytest.mark.parametrize("what", ["swapped", "cut", "renamed", "format", "no JSON"])
def test_a_ring_that_others_changed_does_not_open(what: str) -> None:
    found = orjson.loads(KeyRing.new(1).seal(MASTER))
    first, second = found["keys"]
    if what == "swapped":
        first["versions"], second["versions"] = second["versions"], first["versions"]
    elif what == "cut":
        first["versions"][0]["sealed"] = first["versions"][0]["sealed"][:20]
    elif what == "renamed":
        first["id"] = "other"
    elif what == "format":
        found["format"] = 2
    text = "{" if what == "no JSON" else orjson.dumps(found).decode()
    with pytest.raises(RingError):
        load_keyring(text, MASTER)


def test_a_rotation_leaves_what_is_written_readable() -> None:
    ring = KeyRing.new(1)
    before = ring.envelope(OF_S3)
    turned = load_keyring(ring.with_new_version(OF_S3, 2).seal(MASTER), MASTER)
    unwrap(before.header, turned)
    after = turned.envelope(OF_S3)
    assert before.header[8:24] != after.header[8:24]
    with pytest.raises(KeyUnavailable):
        unwrap(after.header, ring)
    assert ring.etag(OF_KMS, "0" * 32) == ring.with_new_version(OF_KMS, 2).etag(OF_KMS, "0" * 32)


def test_a_disabled_key_does_nothing() -> None:
    ring = KeyRing.new(1).with_new_key("one", 1)
    made = ring.envelope("one")
    off = ring.with_key_state("one", disabled=True)
    with pytest.raises(KeyDisabled):
        off.envelope("one")
    with pytest.raises(KeyDisabled):
        unwrap(made.header, off)
    unwrap(made.header, off.with_key_state("one", disabled=False))


def test_what_cannot_be_changed() -> None:
    ring = KeyRing.new(1)
    for name in ("", "a b", "-a", "a/b", "x" * 65, OF_S3):
        with pytest.raises(RingError):
            ring.with_new_key(name, 1)
    with pytest.raises(RingError):
        ring.with_new_version("none", 1)
    with pytest.raises(KeyUnavailable):
        ring.envelope("none")


# the master key
def settings(**given: object) -> Settings:
    return Settings(**given)  # type: ignore[arg-type]


def test_the_sources_of_a_master_key(tmp_path: Path) -> None:
    text = master_key.new_master()
    key = base64.b64decode(text)
    path = tmp_path / "master"
    path.write_text(text + "\n")
    command = f"{sys.executable} -c 'print(\"{text}\")'"
    for given in ({"master_key": SecretStr(text)}, {"master_key_file": path}, {"master_key_command": command}):
        found = settings(**given)
        assert (found.names_master_key, master_key.is_automatic(found), master_key.read_master(found)) == (
            True,
            False,
            key,
        )
        assert text not in repr(found) or "master_key_command" in given
    automatic = settings(data=tmp_path)
    assert (automatic.names_master_key, master_key.is_automatic(automatic)) == (False, True)
    create_secret(tmp_path / "master-key", text)
    assert master_key.read_master(automatic) == key


def test_where_no_master_key_is_automatic(tmp_path: Path) -> None:
    create_secret(tmp_path / "master-key", master_key.new_master())
    for given in ({"master_key_auto": False}, {"index": SecretStr("postgresql://host/database")}):
        found = settings(data=tmp_path, **given)
        assert not master_key.is_automatic(found)
        with pytest.raises(RingError, match="no master key"):
            master_key.read_master(found)


def test_a_start_goes_on_where_no_master_key_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Empty:
        async def note(self, _: str) -> str:
            return ""

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(keyring, "ensure_master", full)
    asyncio.run(keyring.make_ring(Empty(), settings(data=tmp_path)))  # type: ignore[arg-type]
    assert "AES256 answers 501: No space left on device" in caplog.text


def test_no_master_key_is_found(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text(base64.b64encode(os.urandom(16)).decode())
    for given in (
        {"data": tmp_path},
        {"master_key": SecretStr("no base64!")},
        {"master_key_file": tmp_path / "none"},
        {"master_key_file": short},
        {"master_key_command": "false"},
        {"master_key_command": "/no/such/command"},
        {"master_key_command": "echo"},
        {"master_key_command": "'"},
    ):
        with pytest.raises(RingError):
            master_key.read_master(settings(**given))


def test_settings_that_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="one of master_key"):
        settings(master_key=master_key.new_master(), master_key_file=tmp_path)
    with pytest.raises(ValidationError, match="it needs a master key"):
        settings(default_encryption="AES256", master_key_auto=False)
    with pytest.raises(ValidationError, match="it needs a master key"):
        settings(default_encryption="AES256", index=SecretStr("postgresql://host/database"))
    settings(default_encryption="AES256")
