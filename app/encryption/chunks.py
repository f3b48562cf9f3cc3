"""A body as AES-256-GCM chunks, so that ranges stay cheap and nothing is given out that was not checked.

The construction is STREAM (Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its Nonce-Reuse
Misuse-Resistance", 2015): the nonce of a chunk is its number and whether it is the last one. A key is used for one body
only, so that no nonce repeats; a chunk that was changed, moved, left out or cut off does not open.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from app.errors import DataDamaged

Buffer = bytes | bytearray | memoryview

CHUNK = 64 * 1024
"""Bytes of a body in one chunk; the last has what is left, and at least one."""
TAG = 16
SEALED = CHUNK + TAG

__all__ = ["AESGCM", "CHUNK", "SEALED", "TAG", "Opener", "Sealer", "sealed_size"]


def sealed_size(size: int) -> int:
    """Bytes of the chunks of a body of `size` bytes."""
    return size + TAG * -(-size // CHUNK)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


class Sealer:
    """Makes the chunks of one body, of pieces of any size."""

    def __init__(self, cipher: AESGCM) -> None:
        self._cipher = cipher
        self._number = 0
        self._rest: Buffer = b""

    def seal(self, pieces: Sequence[Buffer], before: bytes = b"", *, last: bool) -> bytearray:
        """The chunks that are whole by now behind `before`; with `last`, all that are left. Never call it again then.

        A chunk is held back until it is known whether it is the last one.
        """
        data = pieces[0] if not self._rest and len(pieces) == 1 else b"".join([self._rest, *pieces])
        size = len(data)
        whole = size if last else max(size - 1, 0) // CHUNK * CHUNK
        made = bytearray(len(before) + sealed_size(whole))
        made[: len(before)] = before
        with memoryview(data) as view, memoryview(made) as out:
            place = len(before)
            for start in range(0, whole, CHUNK):
                end = min(start + CHUNK, whole)
                nonce = _nonce(self._number, last and end == size)
                place += self._cipher.encrypt_into(nonce, view[start:end], None, out[place : place + end - start + TAG])
                self._number += 1
            self._rest = bytes(view[whole:])
        return made


class Opener:
    """Opens chunks of a body of `size` bytes."""

    def __init__(self, cipher: AESGCM, size: int) -> None:
        self._cipher = cipher
        self._size = size
        self._final = (size - 1) // CHUNK

    def open(self, first: int, sealed: Buffer) -> bytes:
        """The bytes of whole chunks from number `first` on. Raises DataDamaged when one is not what was written."""
        opened = []
        with memoryview(sealed) as view:
            for number, start in enumerate(range(0, len(view), SEALED), first):
                try:
                    nonce = _nonce(number, number == self._final)
                    opened.append(self._cipher.decrypt(nonce, view[start : start + SEALED], None))
                except InvalidTag:
                    raise DataDamaged(reason=f"chunk {number} of an encrypted body does not open") from None
        return opened[0] if len(opened) == 1 else b"".join(opened)


def covering(offset: int, length: int, size: int) -> tuple[int, int, int]:
    """The chunks that hold a range of a body: the first one's number, where they begin and end among the chunks."""
    first = offset // CHUNK
    behind = min(-(-(offset + length) // CHUNK) * CHUNK, size)
    return first, first * SEALED, sealed_size(behind)
