"""The keys in a backup: what opens and governs the gateway and lies beside its index.

They are in files of mode 0600. The secret keys of all other accounts and users are in the index itself.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

from sluice_s3.app.access.root_credentials import FILE_NAME as CREDENTIALS
from sluice_s3.app.encryption.keyring import RingError
from sluice_s3.app.encryption.master_key import AUTOMATIC_NAME, automatic_file, check_opens, find_master
from sluice_s3.app.errors import KeyUnavailable
from sluice_s3.app.private_files import create_secret, read_secret
from sluice_s3.app.settings import Settings

ADMIN_TOKEN = "admin-token"  # noqa: S105 - a file's name
CONFIG = "config.toml"
RESTORED = (CREDENTIALS, AUTOMATIC_NAME, ADMIN_TOKEN)
"""Files that a restore puts into the directory of the gateway's own files. The settings are for the operator."""


def save_keys(settings: Settings, ring: str, target: Path) -> list[str]:
    """Write the keys into the directory `target`; return their names.

    Raises KeyUnavailable when the master key does not open the key ring, and OSError.
    """
    found = {
        CREDENTIALS: _credentials(settings),
        AUTOMATIC_NAME: _master_key(settings, ring),
        ADMIN_TOKEN: _admin_token(settings),
        CONFIG: None if settings.config is None else settings.config.read_text(),
    }
    target.mkdir(mode=0o700)
    saved = {name: text for name, text in found.items() if text}
    for name, text in saved.items():
        create_secret(target / name, text)
    return list(saved)


def restore_keys(source: Path, home: Path) -> list[str]:
    """Copy the keys of a backup into `home`, unless they are there; return their names. Raises OSError."""
    restored = []
    for name in RESTORED:
        if not (source / name).exists():
            continue
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not (home / name).exists():
            create_secret(home / name, (source / name).read_text())
        restored.append(name)
    return restored


def _credentials(settings: Settings) -> str | None:
    if settings.root_access_key is not None and settings.root_secret_key is not None:
        fields = {"access_key": settings.root_access_key, "secret_key": settings.root_secret_key.get_secret_value()}
        return json.dumps(fields) + "\n"
    return _read(settings.home / CREDENTIALS)


def _admin_token(settings: Settings) -> str | None:
    if settings.admin_token is not None:
        return settings.admin_token.get_secret_value() + "\n"
    return _read(settings.home / ADMIN_TOKEN)


def _master_key(settings: Settings, ring: str) -> str | None:
    if not ring:
        return _read(automatic_file(settings))
    try:
        check_opens(ring, settings)
        return base64.b64encode(find_master(ring, settings)).decode() + "\n"
    except RingError as error:
        raise KeyUnavailable(
            reason=f"{error}. A backup without the master key cannot restore what is encrypted: "
            "--without-keys if you keep that key yourself"
        ) from error


def _read(path: Path) -> str | None:
    try:
        return read_secret(path)
    except FileNotFoundError:
        return None
