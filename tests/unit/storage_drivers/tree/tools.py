"""What tests of a tree do with it again and again, and keys of every kind."""

from __future__ import annotations

import itertools
import os

from hypothesis import strategies as st

from sluice_s3.storage_drivers.tree import Collision, ScannedFile, TreeFiles
from tests.unit.storage_drivers.tools import Pieces

BUCKET = "photos"
_ids = itertools.count(1)

SEGMENTS = (
    *("", ".", "..", "...", "a", "A", "b", "a.", " ", "a+", "+", "%2f", "%", "%00", "-", "_", "CON", "a:b", "*", "\\"),
    *(
        ".sluice",
        ".sluice-keys",
        ".SLUICE",
        ".sluic",
        ".\u200dsluice",
        ".\u017fluice",
        "\u00e9",
        "e\u0301",
        "\u212b",
        "\u00c5",
    ),
    *("\x01", "\n", "\x7f", "\u0085", "\u202e", "😀", "\U0010ffff", "n" * 255, "n" * 256, "é" * 127 + "n", "é" * 128),
)
KEYS = (
    *("a", "a/b", "a/b/c", "a/", "/a", "/", "//", "a//b", ".", "..", "../a", "a/../b", "a/.", "\0", "a\0b", "k" * 1024),
    *("k/" * 512, "é" * 512, "n" * 300, "%61", "a%2fb", ".sluice-keys/a", ".sluice-keys/k%2f", "k" * 199, "k" * 200),
    *("k" * 398, "K" * 66, "\x7f", "tab\tnew\nline\r", "\ufffe", "é", "e\u0301", "x" * 255 + "/y", "x" * 256 + "/y"),
)


def fits(key: str) -> bool:
    """Whether a text can be a key at all."""
    return 0 < len(key.encode()) <= 1024


def keys() -> st.SearchStrategy[str]:
    """Keys of which many are hard for a file system."""
    letters = st.characters(codec="utf-8")
    segment = st.sampled_from(SEGMENTS) | st.text(letters, max_size=12)
    joined = st.lists(segment, min_size=1, max_size=5).map("/".join)
    return (st.sampled_from(KEYS) | joined | st.text(letters, min_size=1, max_size=300)).filter(fits)


async def put(files: TreeFiles, key: str, body: bytes = b"body", bucket: str = BUCKET) -> str:
    """Write a key that has no row as the store does it; its locator."""
    blob_id = next(_ids)
    stamp = await files.stage(blob_id, Pieces(body))
    path = await files.path_for(bucket, key)
    try:
        await files.publish(blob_id, path)
    except Collision:
        path = files.escaped_path(bucket, key)
        await files.publish(blob_id, path)
    return files.locator(path, stamp)


async def get(files: TreeFiles, locator: str) -> bytes:
    """All bytes of a file."""
    opened = await files.open(locator, 0, 1 << 30)
    try:
        return os.pread(opened.fd, opened.count, opened.offset)
    finally:
        opened.release()


async def scanned(files: TreeFiles, bucket: str = BUCKET) -> list[ScannedFile]:
    """All that a scan finds."""
    return [found async for batch in files.scan(bucket) for found in batch]
