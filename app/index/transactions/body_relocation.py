"""New places for the bodies of versions, also for temporary restores from an archive.

While a version is restored, its pieces are referenced at both places. Pieces to read begin at 0, pieces in the archive
at `ARCHIVE_OFFSET`, which no read reaches. So archived pieces are counted, compacted, scrubbed and journaled like all
others, and are removed with the version.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from sluice_s3.app.index.restore_state import ARCHIVE_OFFSET
from sluice_s3.app.index.rows import PIECES
from sluice_s3.app.index.sql.transaction import DRAW, Row, Transaction
from sluice_s3.app.index.statements import ADD_PIECE, ADD_UPLOAD
from sluice_s3.app.index.transactions.multipart import NUMBER_DIGITS, pieces_number
from sluice_s3.app.index.transactions.refcounts import add_reference, reference_new_blob
from sluice_s3.app.index.transactions.versions import VersionHeader
from sluice_s3.app.index.upkeep_statements import WHOLE_PIECES, WHOLE_UPLOAD

WHOLE_OBJECT_PART = 0
"""The part number of a blob that is a whole object instead of a part."""


class BodyRelocation:
    """New bodies of one version, each referenced by this version alone.

    Other rows may hold the old body, which the caller releases. `made` is the completion result that new uploads
    record: it tells journals and the orphan sweeper that the upload is new.
    """

    def __init__(
        self, bucket_id: int, key: str, storage_class: str, found: VersionHeader, made: tuple[int, str, int]
    ) -> None:
        self._place = bucket_id, key
        self._class = storage_class
        self._found = found
        self._made = made

    def relocate(self, locators: Mapping[str, str], referenced: set[str], *, keep: bool) -> Transaction[str]:
        """Return a body whose blobs are at other places.

        With `keep`, the old blobs stay referenced, too. Returns an empty text, and changes nothing, when the blobs are
        no longer at the old places.
        """
        rows = [row for row in (yield from self._rows()) if row[1] < ARCHIVE_OFFSET]
        if {row[4] for row in rows if row[4]} != locators.keys():
            return ""
        new = [(*row[:4], locators.get(row[4], ""), *row[5:]) for row in rows]
        for row in new:
            if row[4]:
                yield from reference_new_blob(row[4], referenced)
        if keep:
            new += yield from self._held_too(rows, ARCHIVE_OFFSET)
        return (yield from self._body(new))

    def restore(self) -> Transaction[str]:
        """Return a body whose blobs are where `relocate` kept them."""
        rows = [row for row in (yield from self._rows()) if row[1] >= ARCHIVE_OFFSET]
        return (yield from self._body((yield from self._held_too(rows, -ARCHIVE_OFFSET))))

    def _rows(self) -> Transaction[list[Row]]:
        """Return the pieces of the body, in the columns of pieces."""
        body = self._found.body
        if body.startswith(PIECES):
            rows: list[Row] = yield WHOLE_PIECES, (pieces_number(body),)
            return rows
        return [(0, 0, WHOLE_OBJECT_PART, self._found.size, body, 0, "")]

    def _held_too(self, rows: Sequence[Row], by: int) -> Transaction[list[Row]]:
        """Return rows of the same blobs with shifted starts, and count the blobs up."""
        for row in rows:
            if row[4]:
                yield from add_reference(row[4])
        return [(row[0], row[1] + by, *row[2:]) for row in rows]

    def _body(self, rows: Sequence[Row]) -> Transaction[str]:
        if len(rows) == 1 and rows[0][2] == WHOLE_OBJECT_PART:
            return str(rows[0][4])
        described: Row = (self._found.modified, "{}", self._class, "", "", "")
        if self._found.body.startswith(PIECES):
            uploads = yield WHOLE_UPLOAD, (pieces_number(self._found.body),)
            described = uploads[0][4:10]
        number: int = yield DRAW
        upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
        yield ADD_UPLOAD, (number, upload_id, *self._place, *described, *self._made)
        yield ADD_PIECE, [(number, *row[1:]) for row in rows]
        return f"{PIECES}{number}"
