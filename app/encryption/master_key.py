"""The master key, which seals the key ring: 32 bytes as base64.

It comes from a file, the environment or a command. If none of them is configured, it is in a file that the first start
on an SQLite index creates: see `master_key_file`.
"""

from __future__ import annotations

import base64
import binascii
import os
import shlex
import subprocess
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from sluice_s3.app.encryption.keyring import RingError, load_keyring
from sluice_s3.app.private_files import check_given, read_secret

MASTER_KEY_BYTES = 32
COMMAND_SECONDS = 60.0
"""Seconds that a command may take."""
MAX_FILE_BYTES = 4096
"""Maximum bytes of a file or of a command's output."""
AUTOMATIC_NAME = "master-key"
"""Name of the automatic master key's file, beside the first account's generated keys."""


class Sources(Protocol):
    """Settings of the master key: at most one of the first three is set."""

    @property
    def master_key(self) -> SecretStr | None:
        """The master key itself."""
        ...

    @property
    def master_key_file(self) -> Path | None:
        """The file that holds the master key."""
        ...

    @property
    def master_key_command(self) -> str | None:
        """The command whose output is the master key."""
        ...

    @property
    def master_key_auto(self) -> bool:
        """Whether the master key is generated when none is configured."""
        ...

    @property
    def names_master_key(self) -> bool:
        """Whether a master key is configured."""
        ...

    @property
    def home(self) -> Path:
        """The directory of the gateway's own files."""
        ...

    @property
    def index_url(self) -> str | None:
        """The URL of a Postgres index; None for SQLite."""
        ...


def new_master() -> str:
    """Return a new master key as text."""
    return base64.b64encode(os.urandom(MASTER_KEY_BYTES)).decode()


def automatic_file(sources: Sources) -> Path:
    """Return the path of the automatic master key."""
    return sources.home / AUTOMATIC_NAME


def is_automatic(sources: Sources) -> bool:
    """Return whether to use the automatic master key.

    Hosts of a Postgres index need a configured one.
    """
    return sources.master_key_auto and not sources.names_master_key and sources.index_url is None


def read_master(sources: Sources) -> bytes:
    """Return the configured master key, or the automatic one. May block. Raises RingError."""
    if sources.master_key is not None:
        return parse(sources.master_key.get_secret_value(), "the master key")
    if sources.master_key_file is not None:
        return read_file(sources.master_key_file)
    if sources.master_key_command is not None:
        return _printed(sources.master_key_command)
    if is_automatic(sources):
        return read_automatic(automatic_file(sources))
    raise RingError("no master key is given (see SLUICE_MASTER_KEY_FILE)")


def check_opens(text: str, sources: Sources) -> None:
    """Raise RingError unless the configured master key opens a ring.

    The message says what to do.
    """
    try:
        load_keyring(text, read_master(sources))
    except RingError as error:
        raise RingError(_advice(text, sources, error)) from error


def can_open(text: str, sources: Sources) -> bool:
    """Return whether the configured or the automatic master key opens a ring."""
    try:
        load_keyring(text, find_master(text, sources))
    except RingError:
        return False
    return True


def find_master(text: str, sources: Sources) -> bytes:
    """Return the master key that opens a ring.

    It is the automatic one if another is configured already. Raises RingError.
    """
    path = automatic_file(sources)
    return read_automatic(path) if _file_opens(text, path) else read_master(sources)


def _advice(text: str, sources: Sources, error: RingError) -> str:
    path = automatic_file(sources)
    if sources.names_master_key:
        if _file_opens(text, path):
            return f"{error}, the one in {path}: `sluice key reseal FILE` seals it by the one in FILE"
        return str(error)
    advice = "there is a key ring, which wants its master key"
    if not is_automatic(sources):
        return f"{advice} (SLUICE_MASTER_KEY_FILE{f'={path}' if _file_opens(text, path) else ''})"
    if not path.exists():
        return (
            f"{advice}, but {path} is missing: put it back, or say by SLUICE_MASTER_KEY_FILE where it is; "
            "without it everything that is encrypted is lost (`sluice key new-ring` gives it up)"
        )
    return f"{error} ({path} was tried; SLUICE_MASTER_KEY_FILE names another file)"


def _file_opens(text: str, path: Path) -> bool:
    try:
        load_keyring(text, read_automatic(path))
    except RingError:
        return False
    return True


def read_automatic(path: Path) -> bytes:
    """Return the automatic master key from a private file of the gateway. Raises RingError."""
    try:
        return parse(read_secret(path), f"the master key in {path}")
    except OSError as error:
        raise RingError(f"the master key cannot be read: {path}: {error.strerror}") from error


def read_file(path: Path) -> bytes:
    """Return the master key in a file. Raises RingError."""
    try:
        with path.open("rb") as file:
            check_given(file.fileno(), path)
            return parse(file.read(MAX_FILE_BYTES).decode("ascii", "replace"), f"the master key in {path}")
    except OSError as error:
        raise RingError(f"the master key cannot be read: {path}: {error.strerror}") from error


def _printed(command: str) -> bytes:
    try:
        ended = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RingError(f"the command that gives the master key failed: {error}") from error
    if ended.returncode:
        raise RingError(f"the command that gives the master key ended with {ended.returncode}")
    return parse(ended.stdout[:MAX_FILE_BYTES].decode("ascii", "replace"), "what the command printed")


def parse(text: str, what: str) -> bytes:
    """Parse the text of a master key. Raises RingError."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != MASTER_KEY_BYTES:
        raise RingError(f"{what} is not 32 bytes as base64 (see `sluice key new-master`)")
    return key
