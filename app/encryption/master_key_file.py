"""The automatic master key: a file that the first start creates, never a request."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

from sluice_s3.app.encryption.master_key import new_master, read_automatic
from sluice_s3.app.private_files import create_secret, sync_directory

NO_HARD_LINKS = frozenset([errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK])
"""Errors of file systems without hard links."""


def ensure_master(path: Path) -> tuple[bytes, bool]:
    """Read the master key in a file, created when missing; return whether it was created.

    Only its owner can read it, and it is durable with its directory entry. A crash leaves a whole key or none. Of
    several processes one creates it, and all return the same. Raises OSError, RingError for a file without a key.
    """
    new_key = not path.exists() and _make(path)
    for left in path.parent.glob(f".{path.name}.*"):  # left by a killed process
        left.unlink(missing_ok=True)
    sync_directory(path.parent)  # also after a process that ended before its sync
    return read_automatic(path), new_key


def _make(path: Path) -> bool:
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        create_secret(fresh, new_master() + "\n")
        os.link(fresh, path)
    except (FileExistsError, FileNotFoundError):  # another process was faster, and cleaned up
        return False
    except OSError as error:
        if error.errno not in NO_HARD_LINKS or not fresh.exists():
            raise
        fresh.rename(path)  # the server's lock excludes other processes
    finally:
        fresh.unlink(missing_ok=True)
    return True
