"""What clients move: files of every size, names that are hard to carry, and how to tell that they arrived."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.environment import sized

Run = Callable[..., str]
"""Runs a command and gives its standard output."""
KIB, MIB = 1024, 1024 * 1024
LARGEST = sized(20 * MIB, 200_000_000)
SIZES = {
    "empty": 0,
    "one": 1,
    "block": 4 * KIB,
    "record": 128 * KIB,
    "record and one": 128 * KIB + 1,
    "part": 5 * MIB,
    "threshold": 8 * MIB,
    "largest": LARGEST,
}
"""Bytes of a file by name: around the limits of small bodies, of parts and of what clients send in one piece."""
NAMES = (
    "plain.txt",
    "with space.txt",
    " leading and  double .txt",
    "plus+sign+.txt",
    "percent%.txt",
    "percent%20encoded%2Fslash.txt",
    "ümlaut-é-combining e\u0301.txt",
    "日本語/ファイル.txt",
    "emoji 😀.txt",
    "quote'and\"double.txt",
    "amp&lt<gt>.txt",
    "colon;semi=equal,comma@at!$.txt",
    "deep/er/and deeper+%/still/file",
    ".hidden/~tilde#hash?question[bracket]",
)
"""Relative paths that are also keys."""
DOUBLE_SLASH = ("a//b", "a///b//c.txt", "//both", "trailing//", "slash/")
"""Keys that no directory can hold."""


def write(path: Path, size: int, source: random.Random) -> None:
    """A file of `size` bytes that do not compress."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        while size:
            piece = source.randbytes(min(size, MIB))
            file.write(piece)
            size -= len(piece)


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of every file below `root` by its relative path."""
    return {str(path.relative_to(root)): digest(path) for path in sorted(root.rglob("*")) if path.is_file()}


def stored(s3: Any, bucket: str, prefix: str = "") -> dict[str, str]:
    """SHA-256 of every object below `prefix` by the rest of its key, as boto3 reads them."""
    found = {}
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", []):
            body = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"]
            total = hashlib.sha256()
            for chunk in body.iter_chunks(MIB):
                total.update(chunk)
            found[entry["Key"].removeprefix(prefix)] = total.hexdigest()
    return found
