"""Counted bodies: a body has a row in `shared` only while more than one row holds it."""

from __future__ import annotations

from sluice_s3.app.errors import SourceGone
from sluice_s3.app.index.rows import PIECES, is_plain_file, tree_upload
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms
from sluice_s3.app.index.statements import ADD_DISCARD, FORGET_SHARED, SHARE, UNSHARE


def add_reference(body: str) -> Transaction[None]:
    """One more row holds this body. Raises SourceGone for a plain file, which no two rows can hold."""
    if is_plain_file(body):
        raise SourceGone()
    yield SHARE, (body,)


def reference_new_blob(locator: str, taken: set[str]) -> Transaction[None]:
    """One more row of those that are written now holds a new blob; `taken` are those that one of them holds."""
    if locator in taken:
        yield from add_reference(locator)
    taken.add(locator)


def enqueue_discard(body: str) -> Transaction[None]:
    """Queue a body that had one holder, and now has none.

    A plain file stays: whoever replaces it or takes it away does so before the row changes. Only what tells its parts
    is queued.
    """
    if is_plain_file(body):
        upload = tree_upload(body)
        if not upload:
            return
        body = f"{PIECES}{upload}"
    number = yield DRAW
    yield ADD_DISCARD, (number, body, now_ms())


def drop_reference(body: str) -> Transaction[None]:
    """One row less holds this body; the last one queues it for discard."""
    rows = yield UNSHARE, (body,)
    if not rows:
        yield from enqueue_discard(body)
    elif rows[0][0] <= 1:
        yield FORGET_SHARED, (body,)
