"""Bodies that are encrypted on their way to a blob."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from app.encryption.chunks import CHUNK, Sealer, sealed_size
from app.encryption.envelope import HEADER, Envelope
from app.encryption.scheme import Scheme
from storage_drivers.base import Buffer, Source


class Seal:
    """How one new object is encrypted: `envelope` gives a new data key for each of its blobs.

    `keyed` makes an ETag of an MD5, where that must not be told: of the same bytes under the same key the same one, so
    that a part that is sent twice is one.
    """

    def __init__(
        self, scheme: Scheme, envelope: Callable[[], Envelope], keyed: Callable[[str], str] | None = None
    ) -> None:
        self.scheme = scheme
        self._envelope = envelope
        self._keyed = keyed

    def source(self, plain: Source) -> Sealed:
        """The bytes of a source, encrypted."""
        return Sealed(plain, self._envelope())

    def etag(self, md5: str) -> str:
        """The ETag of bytes that have this MD5."""
        return md5 if self._keyed is None else self._keyed(md5)


class Sealed:
    """A `storage_drivers.base.Source` of what another one gives, encrypted. Hashes are of the plain bytes."""

    def __init__(self, plain: Source, envelope: Envelope) -> None:
        self._plain = plain
        self._before = envelope.header
        self._sealer = Sealer(envelope.cipher)
        self._taken: deque[list[Buffer]] = deque()
        """What was read for each piece that is not hashed yet."""
        self._read = 0
        self._ended = self._is_done = False

    @property
    def size(self) -> int | None:
        """Bytes of the blob."""
        size = self._plain.size
        return None if size is None else HEADER + sealed_size(size) if size else 0

    async def read(self) -> Buffer:
        """The next piece; empty at the end, and for an empty body. Raises what the source raises."""
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

    def whole(self, piece: Buffer) -> Buffer:
        """All of it at once, when the source's bytes are here whole."""
        self._ended = True
        self._read = len(piece)
        return self._seal([piece] if piece else [])

    def _seal(self, taken: list[Buffer]) -> Buffer:
        if self._is_done or not self._read:
            return b""
        self._is_done = self._ended
        made = self._sealer.seal(taken, self._before, last=self._ended)
        self._before = b""
        self._taken.append(taken)
        return made

    def digest(self, piece: Buffer) -> None:
        """Hash what the piece was made of."""
        for plain in self._taken.popleft():
            self._plain.digest(plain)

    def verify(self) -> None:
        """See the source."""
        self._plain.verify()
