"""The first account's keys and the admin token: from the settings, else generated into files (mode 0600)."""

from __future__ import annotations

import errno
import hashlib
import json
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app.errors import AccountExists
from sluice_s3.app.index.iam.rows import Account
from sluice_s3.app.index.interface import Index
from sluice_s3.app.private_files import create_secret, read_secret
from sluice_s3.app.settings import Settings

FILE_NAME = "credentials"
TOKEN_FILE = "admin-token"  # noqa: S105 - a file's name
FILE_WAIT_SECONDS = 5.0
"""Seconds that another process has to write the file."""
REFUSED = {("minio", "minio123"), ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")}
"""Well-known keys, besides every secret that equals its access key (`minioadmin` and its like)."""


class WeakCredentials(ValueError):
    """The keys are well-known defaults or too short."""


class Credentials(NamedTuple):
    """An access key and its secret."""

    access_key: str
    secret_key: str
    generated: bool

    def __repr__(self) -> str:
        return f"Credentials({self.access_key!r})"

    @property
    def well_known(self) -> bool:
        """Whether everybody knows them."""
        return self.access_key == self.secret_key or self[:2] in REFUSED


def root_credentials(settings: Settings, *, allow_well_known: bool = False) -> Credentials:
    """Return the keys of the settings, or those of `DATA/credentials`.

    The file is created (mode 0600, synced) when missing. Raises WeakCredentials for keys that are too short (access key
    3, secret 8 characters) or, unless that is allowed, well known, and OSError for a file that others may have written
    or that holds no keys.
    """
    if settings.root_access_key is not None or settings.root_secret_key is not None:
        access_key = settings.root_access_key or ""
        secret = settings.root_secret_key.get_secret_value() if settings.root_secret_key else ""
        if len(access_key) < 3 or len(secret) < 8:
            raise WeakCredentials("the access key needs at least 3 characters and the secret key at least 8; give both")
        given = Credentials(access_key, secret, False)
        if given.well_known and not allow_well_known:
            raise WeakCredentials(
                "these are well-known default credentials: choose others, or give none and have them made"
            )
        return given
    fresh = {"access_key": "SL" + secrets.token_hex(9).upper(), "secret_key": secrets.token_urlsafe(30)}
    path = settings.home / FILE_NAME
    return _parse(read_or_write(path, json.dumps(fresh) + "\n"), path)


def _parse(text: str, path: Path) -> Credentials:
    try:
        fields = json.loads(text)
        access_key, secret_key = fields["access_key"], fields["secret_key"]
    except (ValueError, TypeError, KeyError, RecursionError):
        access_key = secret_key = None
    if not (isinstance(access_key, str) and isinstance(secret_key, str) and access_key and secret_key):
        raise OSError(
            errno.EBADMSG,
            "this file is no JSON of an access_key and a secret_key (restore it, or remove it to have new keys made)",
            str(path),
        )
    return Credentials(access_key, secret_key, True)


def admin_token(settings: Settings) -> str:
    """Return the configured token or that of `DATA/admin-token`, which is created when missing.

    The file has mode 0600 and is synced. Raises OSError for an empty file, which a request without a token would match.
    """
    if settings.admin_token is not None:
        return settings.admin_token.get_secret_value()
    file = settings.home / TOKEN_FILE
    token = read_or_write(file, secrets.token_urlsafe(30) + "\n").strip()
    if not token:
        raise OSError(errno.ENODATA, "there is no token in this file (remove it, and a new one is made)", str(file))
    return token


def read_or_write(path: Path, line: str) -> str:
    """Return a file's content, or create it from `line` if it is missing.

    A new file is durable, and readable by its owner only. If several processes create it, one succeeds and all return
    the same. Raises OSError, also for an empty file.
    """
    try:
        return _read_nonempty(path)
    except FileNotFoundError:
        pass
    try:
        create_secret(path, line)
    except FileExistsError:
        return _read_nonempty(path)
    return line


def _read_nonempty(path: Path) -> str:
    """Return a non-empty file. Another process may be about to write it, by one small write."""
    deadline = time.monotonic() + FILE_WAIT_SECONDS
    while not (text := read_secret(path)):
        if time.monotonic() > deadline:
            raise OSError(errno.ENODATA, "this file is empty (remove it, and a new one is made)", str(path))
        time.sleep(0.01)
    return text


def root_account_id(store_uuid: str) -> str:
    """Return the first account's canonical id: the same for the life of a store."""
    return hashlib.sha256(f"root:{store_uuid}".encode()).hexdigest()


async def ensure_root(index: Index, store_uuid: str, credentials: Credentials) -> str:
    """Create the first account with exactly these keys and return its id.

    Raises AccountExists if another account has the access key.
    """
    account_id = root_account_id(store_uuid)
    existing = await index.access_key(credentials.access_key)
    if existing is not None and existing.account_id != account_id:
        raise AccountExists(access_key=credentials.access_key)
    if existing is None or existing.secret != credentials.secret_key or existing.disabled:
        account = Account(account_id, "root", "", False, 0)
        await index.replace_keys(account, credentials.access_key, credentials.secret_key)
    return account_id
