"""Access keys that need attention: not used for long, or old."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import IdleKey
from sluice_s3.app.index.sql.transaction import now_ms

DAY_MS = 86_400_000
UNUSED_DAYS, OLD_DAYS = 90, 365
MAX_KEYS = 100
"""The most keys in one notice, oldest first."""

Reason = Literal["unused", "never used", "old"]
ADVICE: dict[Reason, str] = {
    "unused": f"Nobody used it for {UNUSED_DAYS} days. Disable it, and delete it if nobody misses it.",
    "never used": f"Nobody used it in {UNUSED_DAYS} days. Disable it, and delete it if nobody misses it.",
    "old": f"It is older than {OLD_DAYS} days. Rotate it: make a second key, move its users over, delete this one.",
}


class KeyNeedingAttention(BaseModel):
    """An active key that is a risk. Times are in milliseconds since the epoch."""

    access_key: str
    account_id: str
    account: str
    user: str | None = Field(description="Null for a key of the account itself.")
    created: int
    last_used: int | None
    reason: Reason
    advice: str


async def keys_needing_attention(index: Index, limit: int = MAX_KEYS) -> list[KeyNeedingAttention]:
    """Return at most `limit` active keys of all accounts that are old or that nobody used for long, oldest first.

    Raises DomainError.
    """
    now = now_ms()
    unused_before, old_before = now - UNUSED_DAYS * DAY_MS, now - OLD_DAYS * DAY_MS
    found = await index.idle_keys(unused_before, old_before, min(limit, MAX_KEYS))
    since = await index.uses_since()
    return [_render(key, unused_before, 0 < since < unused_before) for key in found]


def _render(key: IdleKey, unused_before: int, long_recorded: bool) -> KeyNeedingAttention:
    reason: Reason = "old"
    if key.used and key.used < unused_before:
        reason = "unused"
    elif not key.used and long_recorded and key.created < unused_before:
        reason = "never used"
    return KeyNeedingAttention(
        access_key=key.access_key,
        account_id=key.account_id,
        account=key.account_name,
        user=key.user or None,
        created=key.created,
        last_used=key.used or None,
        reason=reason,
        advice=ADVICE[reason],
    )
