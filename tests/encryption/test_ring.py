"""The key ring: sealed by the master key, changed, and opened again."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path

import orjson
import pytest
from pydantic import SecretStr, ValidationError

from app.encryption import master
from app.encryption.envelope import unwrap
from app.encryption.ring import OF_KMS, OF_S3, KeyRing, RingError, number_of, open_ring
from app.errors import KeyDisabled, KeyUnavailable
from app.settings import Settings

MASTER, OTHER = bytes(32), bytes(31) + b"\1"


def test_a_ring_is_sealed_and_opened() -> None:
    ring = KeyRing.new(7).created("one", 8)
    text = ring.sealed(MASTER)
    found = open_ring(text, MASTER)
    assert (found.number, found.keys) == (2, ring.keys)
    assert list(found.keys) == [OF_S3, OF_KMS, "one"]
    assert number_of(text) == 2
    assert number_of("") == 0
    for version in (one for key in ring.keys.values() for one in key.versions):
        assert version.secret.hex() not in text
        assert base64.b64encode(version.secret).decode() not in text
        assert version.secret.hex() not in repr(version)
    assert text != ring.sealed(MASTER), "with a nonce of its own each time"


def test_another_master_key_does_not_open_it() -> None:
    with pytest.raises(RingError, match="another master key"):
        open_ring(KeyRing.new(1).sealed(MASTER), OTHER)


@pytest.mark.parametrize("what", ["swapped", "cut", "renamed", "format", "no JSON"])
def test_a_ring_that_others_changed_does_not_open(what: str) -> None:
    found = orjson.loads(KeyRing.new(1).sealed(MASTER))
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
        open_ring(text, MASTER)


def test_a_rotation_leaves_what_is_written_readable() -> None:
    ring = KeyRing.new(1)
    before = ring.envelope(OF_S3)
    turned = open_ring(ring.rotated(OF_S3, 2).sealed(MASTER), MASTER)
    unwrap(before.header, turned)
    after = turned.envelope(OF_S3)
    assert before.header[8:24] != after.header[8:24]
    with pytest.raises(KeyUnavailable):
        unwrap(after.header, ring)
    assert ring.etag(OF_KMS, "0" * 32) == ring.rotated(OF_KMS, 2).etag(OF_KMS, "0" * 32)


def test_a_disabled_key_does_nothing() -> None:
    ring = KeyRing.new(1).created("one", 1)
    made = ring.envelope("one")
    off = ring.switched("one", disabled=True)
    with pytest.raises(KeyDisabled):
        off.envelope("one")
    with pytest.raises(KeyDisabled):
        unwrap(made.header, off)
    unwrap(made.header, off.switched("one", disabled=False))


def test_what_cannot_be_changed() -> None:
    ring = KeyRing.new(1)
    for name in ("", "a b", "-a", "a/b", "x" * 65, OF_S3):
        with pytest.raises(RingError):
            ring.created(name, 1)
    with pytest.raises(RingError):
        ring.rotated("none", 1)
    with pytest.raises(KeyUnavailable):
        ring.envelope("none")


# the master key
def settings(**given: object) -> Settings:
    return Settings(**given)  # type: ignore[arg-type]


def test_the_sources_of_a_master_key(tmp_path: Path) -> None:
    text = master.new_master()
    key = base64.b64decode(text)
    path = tmp_path / "master"
    path.write_text(text + "\n")
    command = f"{sys.executable} -c 'print(\"{text}\")'"
    for given in ({"master_key": SecretStr(text)}, {"master_key_file": path}, {"master_key_command": command}):
        found = settings(**given)
        assert (master.is_given(found), master.read_master(found)) == (True, key)
        assert text not in repr(found) or "master_key_command" in given
    assert not master.is_given(settings())


def test_no_master_key_is_found(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_text(base64.b64encode(os.urandom(16)).decode())
    for given in (
        {},
        {"master_key": SecretStr("no base64!")},
        {"master_key_file": tmp_path / "none"},
        {"master_key_file": short},
        {"master_key_command": "false"},
        {"master_key_command": "/no/such/command"},
        {"master_key_command": "echo"},
        {"master_key_command": "'"},
    ):
        with pytest.raises(RingError):
            master.read_master(settings(**given))


def test_settings_that_contradict_each_other(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="one of master_key"):
        settings(master_key=master.new_master(), master_key_file=tmp_path)
    with pytest.raises(ValidationError, match="it needs a master key"):
        settings(default_encryption="AES256")
