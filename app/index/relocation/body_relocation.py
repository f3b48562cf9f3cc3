"""New places for the bodies of versions, also for temporary restores from an archive.

While a version is restored, its pieces are referenced at both places. Pieces to read begin at 0, pieces in the archive
at `ARCHIVE_OFFSET`, which no read reaches. So archived pieces are counted, compacted, scrubbed and journaled like all
others, and are removed with the version.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence

from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.multipart.statements import ADD_PIECE, ADD_UPLOAD, WHOLE_PIECES, WHOLE_UPLOAD
from sluice_s3.app.index.multipart.transactions import NUMBER_DIGITS, pieces_number
from sluice_s3.app.index.reclaim.refcounts import add_reference, reference_new_blob
from sluice_s3.app.index.restore.state import ARCHIVE_OFFSET
from sluice_s3.app.index.sql.transaction import DRAW, Row, Transaction
from sluice_s3.app.index.versioning.transactions import VersionHeader

WHOLE_OBJECT_PART = 0
"""The part number of a blob that is a whole object instead of a part."""


class BodyRelocation:
    """New bodies of one version, each referenced by this version alone.

    Other rows may hold the old body, which the caller releases. `made` is the completion result that new uploads
    record: it tells journals and the orphan sweeper that the upload is new.
    """

    def __init__(
        self, bucket_id: int, key: str, storage_class: str, version: VersionHeader, result: tuple[int, str, int]
    ) -> None:
        self._bucket_and_key = bucket_id, key
        self._class = storage_class
        self._version = version
        self._result = result

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
            new += yield from self._share(rows, ARCHIVE_OFFSET)
        return (yield from self._body(new))

    def restore(self) -> Transaction[str]:
        """Return a body whose blobs are where `relocate` kept them."""
        rows = [row for row in (yield from self._rows()) if row[1] >= ARCHIVE_OFFSET]
        return (yield from self._body((yield from self._share(rows, -ARCHIVE_OFFSET))))

    def _rows(self) -> Transaction[list[Row]]:
        """Return the pieces of the body, in the columns of pieces."""
        body = self._version.body
        if body.startswith(PIECES):
            rows: list[Row] = yield WHOLE_PIECES, (pieces_number(body),)
            return rows
        return [(0, 0, WHOLE_OBJECT_PART, self._version.size, body, 0, "")]

    def _share(self, rows: Sequence[Row], by: int) -> Transaction[list[Row]]:
        """Return rows of the same blobs with shifted starts, and count the blobs up."""
        for row in rows:
            if row[4]:
                yield from add_reference(row[4])
        return [(row[0], row[1] + by, *row[2:]) for row in rows]

    def _body(self, rows: Sequence[Row]) -> Transaction[str]:
        if len(rows) == 1 and rows[0][2] == WHOLE_OBJECT_PART:
            return str(rows[0][4])
        described: Row = (self._version.modified, "{}", self._class, "", "", "")
        if self._version.body.startswith(PIECES):
            uploads = yield WHOLE_UPLOAD, (pieces_number(self._version.body),)
            described = uploads[0][4:10]
        number: int = yield DRAW
        upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
        yield ADD_UPLOAD, (number, upload_id, *self._bucket_and_key, *described, *self._result)
        yield ADD_PIECE, [(number, *row[1:]) for row in rows]
        return f"{PIECES}{number}"
