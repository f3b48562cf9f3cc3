"""Notes which access keys a process used, and writes that into the index about once a minute.

A process notes a key at its first use in each interval, so a last use is at most an interval late, and a killed process
loses at most one. A request of a key that is noted already costs a look into a dictionary.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.iam.rows import ACCOUNT, IDENTITY, KEY, AccessKey, Use, sign_in_key
from sluice_s3.app.index.interface import Index

logger = logging.getLogger("sluice.access")

FLUSH_SECONDS = 60.0
"""Seconds between two writes."""
LAST_FLUSH_SECONDS = 5.0
"""Seconds that a stopping process has to write the rest."""
MAX_KEYS = 10_000
"""Keys that a process notes in an interval. Further ones are noted in the next."""
MAX_WRITTEN = 500
"""Uses that one change of the index writes."""

S3, IAM, STS, CONSOLE = "s3", "iam", "sts", "console"
"""The services that a key is used for."""


class KeyUses:
    """The keys that this process used since it wrote last."""

    def __init__(self, index: Index, region: str) -> None:
        self._index = index
        self._region = region
        self.recent: dict[str, Use] = {}
        """By access key: those noted in this interval."""
        self._unsaved: dict[tuple[str, str], Use] = {}
        """By kind and subject, from intervals whose write failed too."""

    def note(self, key: AccessKey, service: str) -> None:
        """Note a use of a key whose request was authenticated."""
        if len(self.recent) < MAX_KEYS and key.access_key not in self.recent:
            kind, subject = KEY, key.access_key
            if key.token:
                kind, subject = _subject(key)
            now = time.time_ns() // 1_000_000
            self.recent[key.access_key] = Use(kind, subject, key.account_id, now, service, self._region)

    async def run(self) -> None:
        """Write the noted uses every minute until cancelled, then the rest."""
        pause = FLUSH_SECONDS * random.random()  # the workers of a gateway do not all write at once
        try:
            while True:
                await asyncio.sleep(pause)
                await self._try_flush()
                pause = FLUSH_SECONDS
        finally:
            try:
                async with asyncio.timeout(LAST_FLUSH_SECONDS):
                    await self._try_flush()
            except TimeoutError:
                logger.warning("last uses of access keys: those of the last minute are lost")

    async def _try_flush(self) -> None:
        try:
            await self.flush()
        except DomainError as error:  # busy, full or away
            logger.info("last uses of access keys: %s, to be tried again", type(error).__name__)
        except Exception:
            logger.exception("last uses of access keys: to be tried again")

    async def flush(self) -> None:
        """Write the noted uses. Raises DomainError, and then keeps those that are not written."""
        recent, self.recent = self.recent, {}
        for use in recent.values():
            place = use.kind, use.subject
            known = self._unsaved.get(place)
            if len(self._unsaved) < MAX_KEYS if known is None else known.used < use.used:
                self._unsaved[place] = use
        while self._unsaved:
            batch = [self._unsaved[place] for place in list(self._unsaved)[:MAX_WRITTEN]]
            await self._index.record_uses(batch, min(use.used for use in batch))
            for use in batch:
                self._unsaved.pop((use.kind, use.subject), None)


def _subject(key: AccessKey) -> tuple[str, str]:
    """Return whose use that of a temporary key is: of a user, a role or an account, or of a key that signed in."""
    if key.holder is not None:
        if (signed_in := sign_in_key(key.holder.session)) is not None:
            return KEY, signed_in
        if key.holder.identity is not None:
            return IDENTITY, key.holder.identity.id
    return ACCOUNT, key.account_id
