"""The key ring of a process: read from the index, opened with the master key.

It is read again after a change. A key encrypts new objects only once the journals of their store contain it: otherwise
the loss of the index would lose the only key that can read them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from sluice_s3.app.encryption.chunked_aead import AESGCM
from sluice_s3.app.encryption.keyring import KeyRing, RingError, load_keyring, parse_ring_number
from sluice_s3.app.encryption.master_key import (
    Sources,
    automatic_file,
    can_open,
    check_opens,
    is_automatic,
    read_master,
)
from sluice_s3.app.encryption.master_key_file import ensure_master
from sluice_s3.app.errors import KeyUnavailable, NoKeyRing, StoreUnavailable
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.journals.rows import KEYRING, KEYRING_JOURNALED
from sluice_s3.app.index.sql.transaction import of_store

logger = logging.getLogger("sluice.store")

MAX_AGE_SECONDS = 2.0
"""Seconds after which the ring is read again even if the epoch did not change."""
WAIT_SECONDS = 30.0
"""Seconds to wait for journals, which are written about every second while the store accepts writes."""
FIRST_LOOK, LAST_LOOK = 0.02, 0.2


def no_master_key() -> bytes:
    """Raise RingError: there is no master key."""
    raise RingError("no master key is given")


class Keyring:
    """The cached key ring.

    `master` returns the master key, may block, and raises RingError.
    """

    def __init__(self, index: Index, master: Callable[[], bytes] = no_master_key) -> None:
        self.master = master
        self._index = index
        self._text = ""
        self._ring: KeyRing | None = None
        self._generation = -1
        self._stale = 0.0
        self._journaled: set[tuple[str, int]] = set()
        self._lock = asyncio.Lock()

    @property
    def is_fresh(self) -> bool:
        """Whether the cached ring was recently compared with the index."""
        return self._generation == self._index.generation and time.monotonic() < self._stale

    async def refresh(self) -> None:
        """Read the ring again if it may have changed.

        Raises StoreUnavailable when it cannot be opened.
        """
        if not self.is_fresh:
            async with self._lock:
                if not self.is_fresh:
                    await self._read()

    async def read_anew(self) -> None:
        """Read the ring again in any case. Raises StoreUnavailable."""
        async with self._lock:
            await self._read()

    async def _read(self) -> None:
        generation = self._index.generation
        text = await self._index.note(KEYRING)
        if text != self._text:
            try:
                self._ring = await asyncio.to_thread(lambda: load_keyring(text, self.master())) if text else None
            except RingError as error:
                logger.error("key ring: %s", error)
                if self._ring is None:
                    raise StoreUnavailable(reason="the key ring cannot be opened") from error
                # Another master key seals the ring now. The cached ring stays in use until a restart.
            else:
                self._text = text
        self._generation, self._stale = generation, time.monotonic() + MAX_AGE_SECONDS

    @property
    def ring(self) -> KeyRing:
        """The cached ring. Raises NoKeyRing."""
        if self._ring is None:
            raise NoKeyRing()
        return self._ring

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """See `app.encryption.envelope.Keys`."""
        if self._ring is None:
            raise KeyUnavailable(version=key.hex())
        return self._ring.unwrapping(kind, key)

    # whether the ring is journaled
    async def wait_until_journaled(self, store: str, timeout: float = WAIT_SECONDS) -> None:
        """Wait until the journals of a store contain the cached ring.

        Raises StoreUnavailable, NoKeyRing.
        """
        journaled = store, self.ring.number
        if journaled in self._journaled:
            return
        deadline = time.monotonic() + timeout
        pause = FIRST_LOOK
        while int(await self._index.note(of_store(KEYRING_JOURNALED, store)) or 0) < journaled[1]:
            if time.monotonic() > deadline:
                raise StoreUnavailable(reason="the key ring is not written down beside the data")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK)
        self._journaled.add(journaled)


NO_KEYRING = "there is no key ring: start the server with a master key first"


async def ring_text(index: Index) -> str:
    """Return the sealed ring; empty when there is none."""
    return await index.note(KEYRING)


async def make_ring(index: Index, sources: Sources) -> None:
    """Create the ring at the first start with a master key; later check it.

    Later starts check that their master key opens it. The first start also creates the automatic master key. If it
    cannot, there is no ring until a later start can. Raises RingError.
    """
    text = await index.note(KEYRING)
    if text:
        check_opens(text, sources)
        return
    if sources.names_master_key:
        master, where = read_master(sources), "the configured master key"
    elif is_automatic(sources):
        path = automatic_file(sources)
        try:
            master, created = ensure_master(path)
        except OSError as error:
            logger.warning("encryption: no master key in %s, AES256 answers 501: %s", path, error.strerror)
            return
        where = f"{'a new' if created else 'the'} master key in {path}"
    else:
        return
    await index.change_keyring("", KeyRing.new(time.time_ns() // 1_000_000).seal(master))
    logger.info(
        "encryption: a new key ring is sealed by %s: back that up, apart from the data; without it encrypted objects "
        "are lost",
        where,
    )


async def change_ring(
    index: Index, master: bytes, change: Callable[[KeyRing], KeyRing], sealer: bytes = b""
) -> KeyRing:
    """Change the ring; `sealer` seals it if present.

    Raises RingError, ConditionalRequestConflict.
    """
    text = await index.note(KEYRING)
    if not text:
        raise RingError(NO_KEYRING)
    changed = change(load_keyring(text, master))
    await index.change_keyring(text, changed.seal(sealer or master))
    return changed


async def renew_ring(index: Index, sources: Sources) -> None:
    """Replace a ring that no master key opens. Raises RingError, ConditionalRequestConflict, OSError."""
    text = await index.note(KEYRING)
    if not text:
        raise RingError(NO_KEYRING)
    if can_open(text, sources):
        raise RingError("the master key opens the one that is there: nothing is lost")
    master = ensure_master(automatic_file(sources))[0] if is_automatic(sources) else read_master(sources)
    # A rebuild takes the ring with the highest number from the journals, so the new one needs a higher number.
    fresh = KeyRing(parse_ring_number(text) + 1, KeyRing.new(time.time_ns() // 1_000_000).keys.values())
    await index.change_keyring(text, fresh.seal(master))
