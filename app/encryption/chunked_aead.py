"""A body as AES-256-GCM chunks: ranges stay cheap and every byte returned is authenticated.

The construction is STREAM (Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and its Nonce-Reuse
Misuse-Resistance", 2015): the nonce of a chunk is its number and whether it is the last one. A key is used for one body
only, so that no nonce repeats; a chunk that was changed, moved, left out or cut off does not open.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sluice_s3.app.errors import DataDamaged

Buffer = bytes | bytearray | memoryview

CHUNK = 64 * 1024
"""Bytes of a body in one chunk; the last has the rest, at least one."""
TAG = 16
ENCRYPTED_CHUNK_BYTES = CHUNK + TAG

__all__ = ["AESGCM", "CHUNK", "ENCRYPTED_CHUNK_BYTES", "TAG", "ChunkDecryptor", "ChunkEncryptor", "ciphertext_size"]


def ciphertext_size(size: int) -> int:
    """Return the bytes of the chunks of a body of `size` bytes."""
    return size + TAG * -(-size // CHUNK)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


class ChunkEncryptor:
    """Encryptor of one body's pieces, of any size, into chunks."""

    def __init__(self, cipher: AESGCM) -> None:
        self._cipher = cipher
        self._number = 0
        self._rest: Buffer = b""

    def seal(self, pieces: Sequence[Buffer], before: bytes = b"", *, last: bool) -> bytearray:
        """Return the complete chunks behind `before`; with `last`, all that are left.

        A chunk is held back until it is known whether it is the last one. No call may follow the one with `last`.
        """
        data = pieces[0] if not self._rest and len(pieces) == 1 else b"".join([self._rest, *pieces])
        size = len(data)
        whole = size if last else max(size - 1, 0) // CHUNK * CHUNK
        encrypted = bytearray(len(before) + ciphertext_size(whole))
        encrypted[: len(before)] = before
        with memoryview(data) as view, memoryview(encrypted) as out:
            offset = len(before)
            for start in range(0, whole, CHUNK):
                end = min(start + CHUNK, whole)
                nonce = _nonce(self._number, last and end == size)
                offset += self._cipher.encrypt_into(
                    nonce, view[start:end], None, out[offset : offset + end - start + TAG]
                )
                self._number += 1
            self._rest = bytes(view[whole:])
        return encrypted


class ChunkDecryptor:
    """Decryptor of the chunks of a body of `size` bytes."""

    def __init__(self, cipher: AESGCM, size: int) -> None:
        self._cipher = cipher
        self._size = size
        self._final = (size - 1) // CHUNK

    def open(self, first: int, encrypted: Buffer) -> bytes:
        """Return the bytes of whole chunks from number `first` on.

        Raises DataDamaged when one fails its authentication.
        """
        opened = []
        with memoryview(encrypted) as view:
            for number, start in enumerate(range(0, len(view), ENCRYPTED_CHUNK_BYTES), first):
                try:
                    nonce = _nonce(number, number == self._final)
                    opened.append(self._cipher.decrypt(nonce, view[start : start + ENCRYPTED_CHUNK_BYTES], None))
                except InvalidTag:
                    raise DataDamaged(reason=f"chunk {number} of an encrypted body does not open") from None
        return opened[0] if len(opened) == 1 else b"".join(opened)


def chunk_range(offset: int, length: int, size: int) -> tuple[int, int, int]:
    """Return the chunks that contain a range of a body.

    The result is the first chunk's number, and where the chunks begin and end in the ciphertext.
    """
    first = offset // CHUNK
    behind = min(-(-(offset + length) // CHUNK) * CHUNK, size)
    return first, first * ENCRYPTED_CHUNK_BYTES, ciphertext_size(behind)
