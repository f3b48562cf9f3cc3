"""What has to be known of sftp beyond fsspec: host keys, dead connections, and many requests on their way at once."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from storage_drivers.base import Buffer
from storage_drivers.errors import StoreFailed

SCHEMES = frozenset({"sftp", "ssh"})
KNOWN_HOSTS = "~/.ssh/known_hosts"
SILENCE = 60.0
"""Seconds without an answer after which a connection is given up."""
CONNECT = 15.0
"""Seconds for a connection to be made."""
KEEPALIVE = 30
WINDOW = 1 << 18
"""Bytes of a piece that are sent before an answer is awaited."""
REQUEST = 32 * 1024
"""Bytes that a server takes in one request for certain (draft-ietf-secsh-filexfer-02, section 3)."""


def options_for(url: str, options: dict[str, Any]) -> dict[str, Any]:
    """Options for the filesystem of a URL, where a server must be a known host unless `host_key_policy` says else.

    fsspec takes any key by default. `known_hosts` in the options names the file to look in.
    """
    options = dict(options)
    if urlsplit(url).scheme in SCHEMES:
        known_hosts = os.path.expanduser(options.pop("known_hosts", KNOWN_HOSTS))
        options.setdefault("timeout", CONNECT)
        if "host_key_policy" not in options:
            options["host_key_policy"] = _known_hosts_policy(known_hosts)
    return options


def _known_hosts_policy(path: str) -> Any:
    try:
        import paramiko  # an extra
    except ImportError as error:
        raise StoreFailed("sftp needs a package that is not installed: pip install 'sluice[fsspec]'") from error

    class KnownHosts(paramiko.MissingHostKeyPolicy):
        def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
            known = paramiko.HostKeys()
            if os.path.exists(path):
                known.load(path)
            if not known.check(hostname, key):
                raise StoreFailed(f"the {key.get_name()} key of {hostname} is not among the known hosts")

    return KnownHosts()


def prepare_channel(fs: Any) -> None:
    """Never wait for ever on a connection, if it is one of ssh."""
    ftp = getattr(fs, "ftp", None)
    if ftp is not None:
        ftp.get_channel().settimeout(SILENCE)
        ftp.get_channel().get_transport().set_keepalive(KEEPALIVE)


def is_alive(fs: Any, error: Exception) -> bool:
    """Whether a connection can be used after an error."""
    ftp = getattr(fs, "ftp", None)
    if ftp is not None and (ftp.get_channel().closed or not ftp.get_channel().get_transport().is_active()):
        return False
    return isinstance(error, OSError) and not isinstance(error, ConnectionError | TimeoutError)


def write_piece(file: Any, piece: Buffer) -> None:
    """Write a piece whole. Several requests go out before an answer is awaited, and every answer is looked at.

    paramiko looks at the answers to pipelined writes only when it writes again unpipelined, so that is how each window
    ends: else a full disk would go unnoticed.
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
    """Bytes of an object from `start` up to `end`; fewer where it ends before."""
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
    """Make a directory and those above it, where the place needs them; one that is there is no error."""
    if fs.protocol == "memory":  # needs none, and looks through all of them at every call
        return
    if hasattr(fs, "ftp"):
        try:  # one request; fsspec asks for every part of the path first
            fs.ftp.mkdir(path)
        except OSError:
            pass
        else:
            return
    fs.makedirs(path, exist_ok=True)
