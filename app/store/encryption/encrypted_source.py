"""Bodies that are encrypted on their way to a blob."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sluice_s3.app.encryption.chunked_aead import CHUNK, ChunkEncryptor, ciphertext_size
from sluice_s3.app.encryption.envelope import HEADER, Envelope
from sluice_s3.app.encryption.scheme import Scheme
from sluice_s3.storage_drivers.base import BodySource, Buffer


class ObjectEncryption:
    """The encryption of one new object.

    `envelope` creates a new data key for each of its blobs. `keyed` derives an ETag from one that must stay secret.
    The same bytes under the same key have the same ETag, so a part that is sent twice counts once.
    """

    def __init__(
        self, scheme: Scheme, envelope: Callable[[], Envelope], keyed: Callable[[str], str] | None = None
    ) -> None:
        self.scheme = scheme
        self._envelope = envelope
        self._keyed = keyed

    def source(self, plain: BodySource) -> EncryptingSource:
        """Return a source of the encrypted bytes of `plain`."""
        return EncryptingSource(plain, self._envelope())

    def etag(self, plain: str) -> str:
        """Return the ETag of bytes that would have this one without encryption."""
        return plain if self._keyed is None else self._keyed(plain)


class EncryptingSource:
    """A `storage_drivers.base.Source` that encrypts another source. Hashes are of the plain bytes."""

    def __init__(self, plain: BodySource, envelope: Envelope) -> None:
        self._plain = plain
        self._before = envelope.header
        self._sealer = ChunkEncryptor(envelope.cipher)
        self._taken: deque[list[Buffer]] = deque()
        """Plain bytes of each piece that is not hashed yet."""
        self._read = 0
        self._ended = self._is_done = False

    @property
    def size(self) -> int | None:
        """The size of the blob in bytes."""
        size = self._plain.size
        return None if size is None else HEADER + ciphertext_size(size) if size else 0

    async def read(self) -> Buffer:
        """Return the next piece; empty at the end, and for an empty body.

        Raises what the source raises.
        """
        taken: list[Buffer] = []
        unsealed = 0
        while not self._ended:
            piece = await self._plain.read()
            if piece:
                taken.append(piece)
                unsealed += len(piece)
                self._read += len(piece)
            self._ended = not piece or self._read == self._plain.size
            if self._ended or unsealed > CHUNK:
                break
        return self._seal(taken)

    def _seal(self, taken: list[Buffer]) -> Buffer:
        if self._is_done or not self._read:
            return b""
        self._is_done = self._ended
        ciphertext = self._sealer.seal(taken, self._before, last=self._ended)
        self._before = b""
        self._taken.append(taken)
        return ciphertext

    def digest(self, piece: Buffer) -> None:
        """Hash the plain bytes of the piece."""
        for plain in self._taken.popleft():
            self._plain.digest(plain)

    def verify(self) -> None:
        """See `Source`."""
        self._plain.verify()
