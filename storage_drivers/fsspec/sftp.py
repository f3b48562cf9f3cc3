"""Specifics of sftp that fsspec lacks: host keys, dead connections, pipelined requests."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.errors import StoreFailed

SCHEMES = frozenset({"sftp", "ssh"})
KNOWN_HOSTS = "~/.ssh/known_hosts"
SILENCE_SECONDS = 60.0
"""Seconds without an answer after which a connection is abandoned."""
CONNECT_SECONDS = 15.0
"""Seconds to open a connection."""
KEEPALIVE_SECONDS = 30
WINDOW = 1 << 18
"""Bytes of a piece that are sent before an answer is awaited."""
REQUEST = 32 * 1024
"""Bytes that every server accepts in one request (draft-ietf-secsh-filexfer-02, section 3)."""


def options_for(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return filesystem options that require a known host, unless `host_key_policy` differs.

    fsspec accepts any key by default. `known_hosts` in the options names the file of known hosts.
    """
    options = dict(options)
    if urlsplit(url).scheme in SCHEMES:
        known_hosts = os.path.expanduser(options.pop("known_hosts", KNOWN_HOSTS))
        options.setdefault("timeout", CONNECT_SECONDS)
        if "host_key_policy" not in options:
            options["host_key_policy"] = _known_hosts_policy(known_hosts)
    return options


def _known_hosts_policy(path: str) -> Any:
    try:
        import paramiko  # an extra
    except ImportError as error:
        raise StoreFailed("sftp needs a package that is not installed: pip install 'sluice-s3[fsspec]'") from error

    class KnownHosts(paramiko.MissingHostKeyPolicy):
        def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
            """Raise unless the file of known hosts has this key."""
            known = paramiko.HostKeys()
            if os.path.exists(path):
                known.load(path)
            if not known.check(hostname, key):
                raise StoreFailed(f"the {key.get_name()} key of {hostname} is not among the known hosts")

    return KnownHosts()


def prepare_channel(fs: Any) -> None:
    """Set timeouts on an ssh connection, so that no call waits for ever."""
    ftp = getattr(fs, "ftp", None)
    if ftp is not None:
        ftp.get_channel().settimeout(SILENCE_SECONDS)
        ftp.get_channel().get_transport().set_keepalive(KEEPALIVE_SECONDS)


def is_alive(fs: Any, error: Exception) -> bool:
    """Return whether a connection is usable after an error."""
    ftp = getattr(fs, "ftp", None)
    if ftp is not None and (ftp.get_channel().closed or not ftp.get_channel().get_transport().is_active()):
        return False
    return isinstance(error, OSError) and not isinstance(error, ConnectionError | TimeoutError)


def write_piece(file: Any, piece: Buffer) -> None:
    """Write a whole piece with pipelined requests, and check every answer.

    paramiko checks the answers to pipelined writes only at its next unpipelined write, so each window ends with one:
    otherwise a full disk would go unnoticed.
    """
    if not hasattr(file, "set_pipelined"):
        done = file.write(piece)
        if done is not None and done != len(piece):
            raise OSError("a short write")
        return
    view = memoryview(piece)
    for start in range(0, len(view), WINDOW):
        window = view[start : start + WINDOW]
        last = max(0, len(window) - REQUEST)
        if last:
            file.set_pipelined(True)
            file.write(bytes(window[:last]))
        file.set_pipelined(False)
        file.write(bytes(window[last:]))


def read_range(fs: Any, path: str, start: int, end: int) -> bytes:
    """Return bytes of an object from `start` up to `end`; fewer at its end."""
    if not hasattr(fs, "ftp"):
        found: bytes = fs.cat_file(path, start=start, end=end)
        return found
    with fs.open(path, "rb") as file:
        end = min(end, file.stat().st_size)
        if end - start <= REQUEST:
            file.seek(start)
            return bytes(file.read(max(0, end - start)))
        return b"".join(file.readv([(start, end - start)]))


def make_directory(fs: Any, path: str) -> None:
    """Create a directory and its parents, where needed; an existing one is no error."""
    if fs.protocol == "memory":  # needs none, and scans all of them at every call
        return
    if hasattr(fs, "ftp"):
        try:  # one request; fsspec would check every part of the path first
            fs.ftp.mkdir(path)
        except OSError:
            pass
        else:
            return
    fs.makedirs(path, exist_ok=True)
