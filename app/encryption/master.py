"""The master key, which seals the key ring: 32 bytes as base64, from a file, the environment or a command."""

from __future__ import annotations

import base64
import binascii
import os
import shlex
import subprocess
from pathlib import Path
from typing import Protocol

from pydantic import SecretStr

from app.encryption.ring import RingError

MASTER = 32
PATIENCE = 60.0
"""Seconds that a command may take."""
MOST = 4096
"""Bytes of a file or of what a command prints."""


class Sources(Protocol):
    """Settings that say where the master key is: at most one of them is given."""

    master_key: SecretStr | None
    master_key_file: Path | None
    master_key_command: str | None


def new_master() -> str:
    """A new master key as text."""
    return base64.b64encode(os.urandom(MASTER)).decode()


def is_given(sources: Sources) -> bool:
    """Whether the settings name a master key at all."""
    return not (sources.master_key is None and sources.master_key_file is None and sources.master_key_command is None)


def read_master(sources: Sources) -> bytes:
    """The master key that the settings name. May block. Raises RingError."""
    if sources.master_key is not None:
        return parse(sources.master_key.get_secret_value(), "the master key")
    if sources.master_key_file is not None:
        return read_file(sources.master_key_file)
    if sources.master_key_command is not None:
        return _printed(sources.master_key_command)
    raise RingError("no master key is given (see SLUICE_MASTER_KEY_FILE)")


def read_file(path: Path) -> bytes:
    """The master key in a file. Raises RingError."""
    try:
        with path.open("rb") as file:
            return parse(file.read(MOST).decode("ascii", "replace"), f"the master key in {path}")
    except OSError as error:
        raise RingError(f"the master key cannot be read: {path}: {error.strerror}") from error


def _printed(command: str) -> bytes:
    try:
        ended = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise RingError(f"the command that gives the master key failed: {error}") from error
    if ended.returncode:
        raise RingError(f"the command that gives the master key ended with {ended.returncode}")
    return parse(ended.stdout[:MOST].decode("ascii", "replace"), "what the command printed")


def parse(text: str, what: str) -> bytes:
    """A master key of its text. Raises RingError."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != MASTER:
        raise RingError(f"{what} is not 32 bytes as base64 (see `sluice key new-master`)")
    return key
