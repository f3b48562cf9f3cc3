"""The key ring: keys by name, each with all its versions.

A rotation thus changes nothing that is written. The ring is stored as one JSON text in which the master key seals every
secret. The text without the master key opens nothing.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sluice_s3.app.encryption.envelope import RING, Envelope, keyed_etag, wrap
from sluice_s3.app.errors import DataDamaged, KeyDisabled, KeyUnavailable

FORMAT = 1
SECRET, NONCE, VERSION_ID = 32, 12, 16
OF_S3, OF_KMS = "sse-s3", "aws-s3"
"""The keys of every ring: of SSE-S3, and of SSE-KMS when a request names none (AWS's alias/aws/s3)."""
KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class RingError(Exception):
    """A ring cannot be opened or changed; the message has the reason for the operator."""


class KeyVersion(NamedTuple):
    """One secret of a key."""

    id: bytes
    created: int
    """Milliseconds since the epoch."""
    secret: bytes

    def __repr__(self) -> str:
        return f"KeyVersion({self.id.hex()})"


class RingKey(NamedTuple):
    """A key: its last version wraps, all of them unwrap."""

    id: str
    disabled: bool
    versions: tuple[KeyVersion, ...]


def new_version(now: int) -> KeyVersion:
    """Return a new secret."""
    return KeyVersion(os.urandom(VERSION_ID), now, os.urandom(SECRET))


def fingerprint(master: bytes) -> str:
    """Return a fingerprint that identifies a master key and reveals nothing else of it."""
    return hmac.digest(master, b"sluice master key", "sha256").hex()[:16]


class KeyRing:
    """An open ring. It is immutable: each change returns another ring, of the next `number`."""

    def __init__(self, number: int, keys: Iterable[RingKey]) -> None:
        self.number = number
        self.keys = {key.id: key for key in keys}
        self._unwrapping = {
            version.id: (key, AESGCM(version.secret)) for key in self.keys.values() for version in key.versions
        }

    @classmethod
    def new(cls, now: int) -> KeyRing:
        """Return a ring with the keys of every ring."""
        return cls(1, [RingKey(name, False, (new_version(now),)) for name in (OF_S3, OF_KMS)])

    # use
    def envelope(self, key_id: str) -> Envelope:
        """Return a new data key, wrapped by the key of that id.

        Raises KeyUnavailable, KeyDisabled.
        """
        key = self.keys.get(key_id)
        if key is None:
            raise KeyUnavailable(key_id=key_id)
        if key.disabled:
            raise KeyDisabled(key_id=key_id)
        newest = key.versions[-1].id
        return wrap(RING, newest, self._unwrapping[newest][1])

    def etag(self, key_id: str, etag: str) -> str:
        """Return an ETag that reveals nothing of the bytes; a rotation does not change it."""
        return keyed_etag(self.keys[key_id].versions[0].secret, etag)

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """See `app.encryption.envelope.Keys`. Raises KeyUnavailable, KeyDisabled."""
        if kind != RING:
            raise DataDamaged(reason="a body is not encrypted as its version says")
        found = self._unwrapping.get(key)
        if found is None:
            raise KeyUnavailable(version=key.hex())
        if found[0].disabled:
            raise KeyDisabled(key_id=found[0].id)
        return found[1]

    # changes
    def with_new_key(self, key_id: str, now: int) -> KeyRing:
        """Return the ring with a new key. Raises RingError."""
        if not KEY_ID.fullmatch(key_id):
            raise RingError(f"{key_id!r} is no name of a key: 1 to 64 letters, digits, - and _")
        if key_id in self.keys:
            raise RingError(f"there is a key {key_id!r}")
        return self._replace_key(RingKey(key_id, False, (new_version(now),)))

    def with_new_version(self, key_id: str, now: int) -> KeyRing:
        """Return the ring with a new version of a key, which wraps from now on.

        Raises RingError.
        """
        key = self._key(key_id)
        return self._replace_key(key._replace(versions=(*key.versions, new_version(now))))

    def with_key_state(self, key_id: str, *, disabled: bool) -> KeyRing:
        """Return the ring with a key disabled or enabled. Raises RingError."""
        return self._replace_key(self._key(key_id)._replace(disabled=disabled))

    def _key(self, key_id: str) -> RingKey:
        if key_id not in self.keys:
            raise RingError(f"there is no key {key_id!r}")
        return self.keys[key_id]

    def _replace_key(self, key: RingKey) -> KeyRing:
        return KeyRing(self.number + 1, {**self.keys, key.id: key}.values())

    # stored form
    def seal(self, master: bytes) -> str:
        """Return the text of the ring, sealed by a master key."""
        cipher = AESGCM(master)
        keys = [
            {
                "id": key.id,
                "disabled": key.disabled,
                "versions": [
                    {"id": one.id.hex(), "created": one.created, "sealed": _seal(cipher, key.id, one)}
                    for one in key.versions
                ],
            }
            for key in self.keys.values()
        ]
        return orjson.dumps(
            {"format": FORMAT, "number": self.number, "master": fingerprint(master), "keys": keys}
        ).decode()


def load_keyring(text: str, master: bytes) -> KeyRing:
    """Open the text of a ring.

    Raises RingError when this master key did not seal it.
    """
    try:
        found = orjson.loads(text)
        if found["format"] != FORMAT:
            raise RingError("the key ring was written by another version of sluice")
        if found["master"] != fingerprint(master):
            raise RingError("the key ring is sealed by another master key")
        cipher = AESGCM(master)
        keys = [
            RingKey(
                key["id"],
                bool(key["disabled"]),
                tuple(_open_version(cipher, key["id"], one) for one in key["versions"]),
            )
            for key in found["keys"]
        ]
        return KeyRing(int(found["number"]), keys)
    except (ValueError, KeyError, TypeError, InvalidTag) as error:
        raise RingError("the key ring was changed by others and does not open") from error


def parse_ring_number(text: str) -> int:
    """Return the number of a ring, without a master key; 0 for no ring."""
    return int(orjson.loads(text)["number"]) if text else 0


def _associated_data(key_id: str, version: bytes) -> bytes:
    return f"sluice key {key_id}/{version.hex()}".encode()


def _seal(cipher: AESGCM, key_id: str, version: KeyVersion) -> str:
    nonce = os.urandom(NONCE)
    return base64.b64encode(
        nonce + cipher.encrypt(nonce, version.secret, _associated_data(key_id, version.id))
    ).decode()


def _open_version(cipher: AESGCM, key_id: str, found: dict[str, Any]) -> KeyVersion:
    version, sealed = bytes.fromhex(found["id"]), base64.b64decode(found["sealed"])
    secret = cipher.decrypt(sealed[:NONCE], sealed[NONCE:], _associated_data(key_id, version))
    return KeyVersion(version, int(found["created"]), secret)
