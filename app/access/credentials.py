"""The first account's keys: from the settings, else generated once and kept in a file only its owner can read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from app.errors import AccountExists
from app.index.base import Index
from app.index.rows import Account
from app.settings import Settings

FILE_NAME = "credentials"
PATIENCE = 5.0
"""Seconds that another process has to write such a file."""
REFUSED = {("minio", "minio123"), ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")}
"""What everybody knows, besides every secret that is its own access key (`minioadmin` and its like)."""


class WeakCredentials(ValueError):
    """The given keys are well-known defaults or too short."""


class Credentials(NamedTuple):
    """An access key and its secret."""

    access_key: str
    secret_key: str
    generated: bool

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"


def root_credentials(settings: Settings) -> Credentials:
    """The keys of the settings, or those of `DATA/credentials`, which is made (mode 0600, synced) when missing.

    Raises WeakCredentials for keys that everybody knows or that are too short (access key 3, secret 8 characters).
    """
    if settings.root_access_key is not None or settings.root_secret_key is not None:
        access_key = settings.root_access_key or ""
        secret = settings.root_secret_key.get_secret_value() if settings.root_secret_key else ""
        if len(access_key) < 3 or len(secret) < 8:
            raise WeakCredentials("the access key needs at least 3 characters and the secret key at least 8; give both")
        if access_key == secret or (access_key, secret) in REFUSED:
            raise WeakCredentials(
                "these are well-known default credentials: choose others, or give none and have them made"
            )
        return Credentials(access_key, secret, False)
    fresh = {"access_key": "SL" + secrets.token_hex(9).upper(), "secret_key": secrets.token_urlsafe(30)}
    kept = json.loads(read_or_write(settings.home / FILE_NAME, json.dumps(fresh) + "\n"))
    return Credentials(kept["access_key"], kept["secret_key"], True)


def read_or_write(path: Path, line: str) -> str:
    """What is in a file; where there is none, `line` becomes one that only its owner can read (durable).

    Of several processes that make it, one does, and all get the same. Raises OSError, also for an empty file.
    """
    try:
        return _whole(path)
    except FileNotFoundError:
        pass
    try:
        write_private(path, line)
    except FileExistsError:
        return _whole(path)
    return line


def _whole(path: Path) -> str:
    """A file that is not empty: another process may be about to write it, by one small write."""
    deadline = time.monotonic() + PATIENCE
    while not (text := path.read_text()):
        if time.monotonic() > deadline:
            raise OSError(errno.ENODATA, "this file is empty (remove it, and it is made anew)", str(path))
        time.sleep(0.01)
    return text


def write_private(path: Path, text: str) -> None:
    """Write a new file that only its owner can read, durable with its directory entry. Raises FileExistsError."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def root_account_id(store_uuid: str) -> str:
    """The first account's canonical id: the same for the life of a store."""
    return hashlib.sha256(f"root:{store_uuid}".encode()).hexdigest()


async def ensure_root(index: Index, store_uuid: str, credentials: Credentials) -> str:
    """Make the first account with exactly these keys and return its id. Raises AccountExists for another's key."""
    account_id = root_account_id(store_uuid)
    existing = await index.access_key(credentials.access_key)
    if existing is not None and existing.account_id != account_id:
        raise AccountExists(access_key=credentials.access_key)
    if existing is None or existing.secret != credentials.secret_key or existing.disabled:
        account = Account(account_id, "root", "", False, 0)
        await index.replace_keys(account, credentials.access_key, credentials.secret_key)
    return account_id
