"""A source that a test can steer, stand-ins that fail, and looks at what a store holds."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver


class Pieces:
    """A `BodySource` of pieces. One may be an exception, which `read` raises, or an awaitable, awaited first."""

    def __init__(self, *pieces: Buffer | Exception | Awaitable[object], refuse: Exception | None = None) -> None:
        self.size: int | None = sum(len(piece) for piece in pieces if isinstance(piece, (bytes, bytearray, memoryview)))
        self.hash = hashlib.sha256()
        self.to_digest: list[int] = []
        """Bytes of the pieces that were read and not yet digested."""
        self.verified = False
        self.ended = False
        self._pieces = list(pieces)
        self._refuse = refuse

    @staticmethod
    def hash_of(body: bytes) -> bytes:
        """What `hash` comes to when the whole body was digested in order."""
        return hashlib.sha256(body).digest()

    async def read(self) -> Buffer:
        while self._pieces:
            piece = self._pieces.pop(0)
            if isinstance(piece, Exception):
                raise piece
            if isinstance(piece, (bytes, bytearray, memoryview)):
                self.to_digest.append(len(piece))
                return piece
            await piece
        self.ended = True
        return b""

    def digest(self, piece: Buffer) -> None:
        assert not self.verified
        assert len(piece) == self.to_digest.pop(0), "digested in other pieces than it was read"
        self.hash.update(piece)

    def verify(self) -> None:
        assert self.ended
        self.verified = True
        if self._refuse is not None:
            raise self._refuse


def stored(root: Path) -> list[str]:
    """Names of all files under data/."""
    return sorted(path.name for path in (root / "data").rglob("*") if path.is_file())


async def content(driver: ObjectsDriver, locator: str, offset: int, length: int) -> bytes:
    """Bytes of a blob by `feed`, which goes through `read`."""
    taken = bytearray()
    await driver.feed(locator, offset, length, taken.extend)
    return bytes(taken)


async def blobs(driver: ObjectsDriver) -> dict[str, int]:
    """What `walk` finds."""
    return {locator: size async for locator, size in driver.walk()}


def fail_nth(original: Callable[..., object], error: OSError, nth: int = 1) -> Callable[..., object]:
    """A stand-in for an os function that fails at its nth call and is the original otherwise."""
    calls = iter(range(1, 1_000_000))

    def call(*args: object, **kwargs: object) -> object:
        if next(calls) == nth:
            raise error
        return original(*args, **kwargs)

    return call


def split(body: bytes, sizes: Iterable[int]) -> list[bytes]:
    """Cut a body into pieces of the given sizes; what is left is the last."""
    pieces, at = [], 0
    for size in sizes:
        pieces.append(body[at : at + size])
        at += size
    return [piece for piece in [*pieces, body[at:]] if piece]
