"""The key ring of a process: read from the index, opened with the master key, and read again when it was changed.

A key is used for new objects only once the journals of their store tell of it: else a lost index would take with it
what alone can read them (DESIGN §4).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from app.encryption.chunks import AESGCM
from app.encryption.ring import KeyRing, RingError, open_ring
from app.errors import KeyUnavailable, NoKeyRing, NotNow, StoreUnavailable
from app.index.base import Index
from app.index.decisions import KEYRING, KEYRING_KEPT
from app.index.steps import of_store

logger = logging.getLogger("sluice.store")

MAX_AGE = 2.0
"""Seconds after which the ring is read again even if no generation changed."""
PATIENCE = 30.0
"""Seconds: journals are written every second or so, where the store can be written at all."""
FIRST_LOOK, LAST_LOOK = 0.02, 0.2


def no_master() -> bytes:
    """There is no master key. Raises RingError."""
    raise RingError("no master key is given")


class Keyring:
    """`master` gives the master key, may block, and raises RingError."""

    def __init__(self, index: Index, master: Callable[[], bytes] = no_master) -> None:
        self.master = master
        self._index = index
        self._text = ""
        self._ring: KeyRing | None = None
        self._generation = -1
        self._stale = 0.0
        self._kept: set[tuple[str, int]] = set()
        self._lock = asyncio.Lock()

    @property
    def is_fresh(self) -> bool:
        """What is known of the ring is what the index said of late."""
        return self._generation == self._index.generation and time.monotonic() < self._stale

    async def refresh(self) -> None:
        """Read the ring anew if it may have changed. Raises StoreUnavailable when it cannot be opened."""
        if not self.is_fresh:
            async with self._lock:
                if not self.is_fresh:
                    await self._read()

    async def read_anew(self) -> None:
        """Read the ring whether or not it seems to have changed. Raises StoreUnavailable."""
        async with self._lock:
            await self._read()

    async def _read(self) -> None:
        generation = self._index.generation
        text = await self._index.note(KEYRING)
        if text != self._text:
            try:
                self._ring = await asyncio.to_thread(lambda: open_ring(text, self.master())) if text else None
            except RingError as error:
                logger.error("key ring: %s", error)
                if self._ring is None:
                    raise StoreUnavailable(reason="the key ring cannot be opened") from error
                # sealed anew by another master key: what is known of it goes on, until a restart
            else:
                self._text = text
        self._generation, self._stale = generation, time.monotonic() + MAX_AGE

    @property
    def ring(self) -> KeyRing:
        """The ring as it is known. Raises NoKeyRing."""
        if self._ring is None:
            raise NoKeyRing()
        return self._ring

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        """See `app.encryption.envelope.Keys`."""
        if self._ring is None:
            raise KeyUnavailable(version=key.hex())
        return self._ring.unwrapping(kind, key)

    # written down
    def check_kept(self, store: str) -> None:
        """Raises NotNow unless it is known that the journals of a store tell of the ring."""
        if (store, self.ring.number) not in self._kept:
            raise NotNow

    async def kept(self, store: str, patience: float = PATIENCE) -> None:
        """Return once the journals of a store tell of the ring as it is known. Raises StoreUnavailable, NoKeyRing."""
        known = store, self.ring.number
        if known in self._kept:
            return
        until = time.monotonic() + patience
        pause = FIRST_LOOK
        while int(await self._index.note(of_store(KEYRING_KEPT, store)) or 0) < known[1]:
            if time.monotonic() > until:
                raise StoreUnavailable(reason="the key ring is not written down beside the data")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LAST_LOOK)
        self._kept.add(known)


NO_RING = "there is no key ring: start the server with a master key first"


async def ring_text(index: Index) -> str:
    """The sealed ring, empty when there is none."""
    return await index.note(KEYRING)


async def make_ring(index: Index, master: Callable[[], bytes], *, given: bool) -> None:
    """Make the ring with the first start that has a master key, and see that this one opens it. Raises RingError."""
    text = await index.note(KEYRING)
    if text:
        if not given:
            raise RingError("there is a key ring, which wants its master key (SLUICE_MASTER_KEY_FILE)")
        open_ring(text, master())
    elif given:
        await index.change_keyring("", KeyRing.new(time.time_ns() // 1_000_000).sealed(master()))
        logger.info("made a key ring: whoever loses the master key loses everything that is encrypted")


async def change_ring(
    index: Index, master: bytes, change: Callable[[KeyRing], KeyRing], sealer: bytes = b""
) -> KeyRing:
    """Change the ring; it is sealed by `sealer` if that is given. Raises RingError, ConditionalRequestConflict."""
    text = await index.note(KEYRING)
    if not text:
        raise RingError(NO_RING)
    changed = change(open_ring(text, master))
    await index.change_keyring(text, changed.sealed(sealer or master))
    return changed
