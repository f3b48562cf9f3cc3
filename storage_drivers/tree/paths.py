"""Mapping between keys and paths, without calls to the mount.

A key is at ROOT/<bucket>/<key> when it can be a path as it stands. Every other key, and one whose path is taken, is at
ROOT/<bucket>/.sluice-keys/<the key, encoded, in pieces>. There `a-z 0-9 - _` stand for themselves and every other byte
of the key's UTF-8 is `%` and two lower-case hexadecimal digits, so that no two encodings differ by case or
normalisation only. A piece that is a directory ends with `+`, so that no key's file is where another needs a directory.
"""

from __future__ import annotations

import re
import unicodedata

from sluice_s3.storage_drivers.errors import BlobMissing

MAX_KEY = 1024
"""Bytes of a key: https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html"""
MAX_NAME = 255
"""Bytes of a name on nearly every filesystem."""
ESCAPED = ".sluice-keys"
RESERVED = ".sluice"
PIECE_ENCODED_BYTES = 199
"""Bytes of the encoding in one piece, without its `+`."""

_CODES = tuple(chr(byte) if re.match(r"[a-z0-9_-]", chr(byte)) else f"%{byte:02x}" for byte in range(256))
_ESCAPE = re.compile(rb"%([0-9a-f]{2})")
_PORTABLE_NAME = re.compile(r"[a-z0-9_-][a-z0-9._-]*(?<!\.)")
_SILLY_RENAME = re.compile(r"\.nfs[0-9a-f]{16,}|\.fuse_hidden[0-9a-f]{16,}")


def direct_path(bucket: str, key: str, careful: bool = False) -> str | None:
    """Return a key's own path; None when there can be none.

    `careful` allows only names that no mount changes and that have no twins, for mounts that confuse others.
    """
    if "\0" in key:
        return None
    for segment in key.split("/"):
        if segment in ("", ".", "..") or len(segment.encode()) > MAX_NAME or is_reserved(segment):
            return None
        if careful and not _PORTABLE_NAME.fullmatch(segment):
            return None
    return f"{bucket}/{key}"


def escaped_path(bucket: str, key: str) -> str:
    """Return the path of a key that is not at its own."""
    encoded = "".join(_CODES[byte] for byte in key.encode())
    pieces = [encoded[start : start + PIECE_ENCODED_BYTES] for start in range(0, len(encoded), PIECE_ENCODED_BYTES)]
    return f"{bucket}/{ESCAPED}/{'+/'.join(pieces)}"


def is_escaped(path: str) -> bool:
    """Return whether a path is an escaped one."""
    return path.split("/", 2)[1:2] == [ESCAPED]


def key_of(bucket: str, path: str) -> str | None:
    """Return the key of the file at a path; None when there can be none."""
    inside = path.removeprefix(f"{bucket}/")
    if inside == path or not inside:
        return None
    key = _decode(inside.removeprefix(f"{ESCAPED}/")) if is_escaped(path) else inside
    if key is None or not 0 < _encoded_length(key) <= MAX_KEY:
        return None
    return key if path in (direct_path(bucket, key), escaped_path(bucket, key)) else None


def is_reserved(segment: str) -> bool:
    """Return whether a name begins with ours, ignoring case, normalisation and invisible letters."""
    if segment.isascii():
        return segment[: len(RESERVED)].lower() == RESERVED
    visible = "".join(
        letter for letter in unicodedata.normalize("NFKC", segment) if unicodedata.category(letter) != "Cf"
    )
    return unicodedata.normalize("NFKC", visible).casefold().startswith(RESERVED)


def is_silly_rename(name: str) -> bool:
    """Return whether a name is the silly rename of a removed file still in use.

    NFS and FUSE create such names.
    """
    return _SILLY_RENAME.fullmatch(name) is not None


def validated_key(path: str) -> bytes:
    """Return a path as bytes for the mount.

    Raises BlobMissing for a path that none of the above returns.
    """
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        encoded = b""
    parts = encoded.split(b"/")
    if len(parts) < 2 or b"\0" in encoded or not {b"", b".", b".."}.isdisjoint(parts):
        raise BlobMissing(f"{path!r} is no path of a tree")
    return encoded


def _decode(encoded: str) -> str | None:
    whole = encoded.replace("+/", "")
    try:
        return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), whole.encode()).decode()
    except UnicodeError:
        return None


def _encoded_length(key: str) -> int:
    """Return the bytes of a key, -1 for a name that is no UTF-8."""
    try:
        return len(key.encode())
    except UnicodeEncodeError:
        return -1
