"""When access keys, users, roles and accounts were last used.

`KEY` is a use of a permanent key. `IDENTITY` and `ACCOUNT` are uses of temporary keys, by the id of the user, role or
account that they are of. Processes write what they saw about once a minute: see `app.access.key_uses`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.iam.rows import Account, AccountSummary, IdleKey, KeyUse, Use, UserUses
from sluice_s3.app.index.iam.statements import ACCOUNT
from sluice_s3.app.index.iam.use_statements import (
    ACCOUNT_USES,
    ACCOUNTS_PAGE,
    BUCKET_COUNTS,
    IDENTITY_COUNTS,
    IDENTITY_USES,
    IDLE_KEYS,
    LAST_USE,
    OWN_KEY_USES,
    RECORD_USE,
    START,
    USER_KEY_USES,
)
from sluice_s3.app.index.sql.transaction import Row, Transaction

SINCE = ("", "")
"""Kind and subject of the row that says since when uses are recorded."""


def record_uses(uses: Sequence[Use], since: int) -> Transaction[None]:
    """Record uses, unless later ones are known; those of keys and identities that are gone are dropped.

    `since` (milliseconds) is when recording began, of which the first is kept.
    """
    yield START, (*SINCE, "", since, "", "")
    for kind, statement in RECORD_USE.items():
        rows = sorted((use.subject, use.used, use.service, use.region) for use in uses if use.kind == kind)
        if rows:
            yield statement, [(used, service, region, subject) for subject, used, service, region in rows]


def last_use(kind: str, subject: str) -> Transaction[Use | None]:
    """Return the last use of a key, an identity or an account; None when none is known."""
    rows = yield LAST_USE, (kind, subject)
    return Use._make(rows[0]) if rows else None


def uses_since() -> Transaction[int]:
    """Return since when uses are recorded, in milliseconds; 0 before the first."""
    rows = yield LAST_USE, SINCE
    return int(rows[0][3]) if rows else 0


def uses_of_users(account_id: str, first: str, last: str) -> Transaction[dict[str, UserUses]]:
    """Return keys and last sessions of the users with folded names from `first` to `last`, by the users' ids."""
    found: dict[str, UserUses] = {}
    for row in (yield USER_KEY_USES, (account_id, first, last)):
        found.setdefault(row[0], UserUses([], 0)).keys.append(KeyUse._make(row[1:]))
    for identity, used in (yield IDENTITY_USES, (account_id, first, last)):
        found[identity] = UserUses(found[identity].keys if identity in found else [], used)
    return found


def accounts_page(after: tuple[int, str], limit: int) -> Transaction[list[AccountSummary]]:
    """Return accounts, oldest first, that follow a time of creation and an id, with what they have."""
    rows = yield ACCOUNTS_PAGE, (after[0], *after, limit)
    return (yield from _summaries(after, rows))


def account_summary(account_id: str) -> Transaction[AccountSummary | None]:
    """Return an account with what it has; None if there is none."""
    rows = yield ACCOUNT, (account_id,)
    # what follows the id without its last character includes the id, and little else that was made at the same time
    summaries = yield from _summaries((rows[0][4], account_id[:-1]) if rows else (0, ""), rows)
    return summaries[0] if summaries else None


def _summaries(after: tuple[int, str], rows: list[Row]) -> Transaction[list[AccountSummary]]:
    """Return what accounts have, that follow a time of creation and an id."""
    if not rows:
        return []
    accounts = [Account(row[0], row[1], row[2], row[3] > 0, row[4]) for row in rows]
    between = (after[0], *after, accounts[-1].created, accounts[-1].created, accounts[-1].id)
    keys: dict[str, list[KeyUse]] = {}
    for row in (yield OWN_KEY_USES, between):
        keys.setdefault(row[0], []).append(KeyUse._make(row[1:]))
    counts: dict[str, dict[str, int]] = {}
    for account_id, kind, number in (yield IDENTITY_COUNTS, between):
        counts.setdefault(account_id, {})[kind] = number
    buckets = dict((yield BUCKET_COUNTS, between))
    used = dict((yield ACCOUNT_USES, between))
    return [
        AccountSummary(one, keys.get(one.id, []), counts.get(one.id, {}), buckets.get(one.id, 0), used.get(one.id, 0))
        for one in accounts
    ]


def idle_keys(unused_before: int, old_before: int, limit: int) -> Transaction[list[IdleKey]]:
    """Return active keys last used before a time, never used since before it, or made before another; oldest first.

    Keys count as never used only when uses were recorded for as long. Times are in milliseconds.
    """
    since = yield from uses_since()
    never_before = unused_before if 0 < since < unused_before else 0
    rows = yield IDLE_KEYS, (unused_before, never_before, old_before, limit)
    return [IdleKey._make(row) for row in rows]
