"""Reference counts: a body has a row in `shared` only while several rows hold it."""

from __future__ import annotations

import orjson

from sluice_s3.app.errors import SourceGone
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.plain_files.rows import is_plain_file, tree_upload
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.index.reclaim.statements import (
    ADD_DISCARD,
    ADD_REFERENCE,
    BODY,
    DROP_REFERENCE,
    EXTENTS,
    PIECE,
    REMOVE_REFCOUNT,
)
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms


def holds_body(holder: BlobReference, body: str) -> Transaction[bool]:
    """Return whether a row references a body."""
    if holder.kind == "version":
        rows = yield BODY, (holder.first,)
        return [stored for (stored,) in rows] == [body]
    if holder.kind == "part":
        rows = yield EXTENTS, (holder.first, holder.second)
        return bool(rows) and body in [locator for locator, _, _ in orjson.loads(rows[0][0])]
    rows = yield PIECE, (holder.first, holder.second, holder.third)
    return [stored for (stored,) in rows] == [body]


def add_reference(body: str) -> Transaction[None]:
    """Count one more reference to a body.

    Raises SourceGone for a plain file, which only one row can hold.
    """
    if is_plain_file(body):
        raise SourceGone()
    yield ADD_REFERENCE, (body,)


def reference_new_blob(locator: str, referenced: set[str]) -> Transaction[None]:
    """Count one more reference of a new row to a new blob.

    `referenced` are the blobs that a new row already holds.
    """
    if locator in referenced:
        yield from add_reference(locator)
    referenced.add(locator)


def enqueue_discard(body: str) -> Transaction[None]:
    """Queue a body that has lost its only holder.

    A plain file is not queued: it is replaced or removed before the row changes. Only the pieces that describe its
    parts are queued.
    """
    if is_plain_file(body):
        upload = tree_upload(body)
        if not upload:
            return
        body = f"{PIECES}{upload}"
    number = yield DRAW
    yield ADD_DISCARD, (number, body, now_ms())


def drop_reference(body: str) -> Transaction[None]:
    """Count one reference less; the last one queues the body for discard."""
    rows = yield DROP_REFERENCE, (body,)
    if not rows:
        yield from enqueue_discard(body)
    elif rows[0][0] <= 1:
        yield REMOVE_REFCOUNT, (body,)
