"""Counted bodies: a body has a row in `shared` only while more than one row holds it."""

from __future__ import annotations

from app.errors import SourceGone
from app.index.rows import PIECES, is_tree, tree_upload
from app.index.statements import ADD_DISCARD, FORGET_SHARED, SHARE, UNSHARE
from app.index.steps import DRAW, Transaction, now_ms


def share(body: str) -> Transaction[None]:
    """One more row holds this body. Raises SourceGone for a plain file, which no two rows can hold."""
    if is_tree(body):
        raise SourceGone()
    yield SHARE, (body,)


def take(locator: str, taken: set[str]) -> Transaction[None]:
    """One more row of those that are written now holds a new blob; `taken` are those that one of them holds."""
    if locator in taken:
        yield from share(locator)
    taken.add(locator)


def discard(body: str) -> Transaction[None]:
    """Queue a body that had one holder, and now has none.

    A plain file stays: whoever replaces it or takes it away does so before the row changes. Only what tells its parts
    is queued.
    """
    if is_tree(body):
        upload = tree_upload(body)
        if not upload:
            return
        body = f"{PIECES}{upload}"
    number = yield DRAW
    yield ADD_DISCARD, (number, body, now_ms())


def release(body: str) -> Transaction[None]:
    """One row less holds this body; the last one queues it for discard."""
    rows = yield UNSHARE, (body,)
    if not rows:
        yield from discard(body)
    elif rows[0][0] <= 1:
        yield FORGET_SHARED, (body,)
