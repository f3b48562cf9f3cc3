"""A load test's files as one tar, made while it is read: what is in it is compressed already."""

from __future__ import annotations

import tarfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import aiofiles

CHUNK_BYTES = 256 * 1024
END = bytes(2 * tarfile.BLOCKSIZE)


async def stream_tar(files: Iterable[tuple[Path, str]], folder: str) -> AsyncIterator[bytes]:
    """Yield a tar of files with their paths in a folder. A file that shrinks meanwhile is filled up with zeros."""
    for path, inside in files:
        async with aiofiles.open(path, "rb") as file:
            size = await file.seek(0, 2)
            await file.seek(0)
            head = tarfile.TarInfo(f"{folder}/{inside}")
            head.size, head.mode = size, 0o644
            yield head.tobuf(tarfile.PAX_FORMAT)
            left = size
            while left and (chunk := await file.read(min(left, CHUNK_BYTES))):
                left -= len(chunk)
                yield chunk
            yield bytes(left + -size % tarfile.BLOCKSIZE)
    yield END
