"""Listing of the open uploads of a bucket: by key, then by initiation."""

from __future__ import annotations

from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.multipart.statements import UPLOADS
from sluice_s3.app.index.objects.listing import KeyOrder, scan_grouped, start_key, successor
from sluice_s3.app.index.sql.transaction import Transaction

OPEN_UPLOADS = KeyOrder(UPLOADS, Upload._fields.index("key"), Upload._fields.index("id"))


def uploads(
    bucket_id: int, prefix: str, delimiter: str, after_key: str, after_number: int | None, limit: int
) -> Transaction[tuple[list[Upload], list[str], bool]]:
    """Return a page of open uploads, ordered by key and then by initiation.

    With `after_number`, the page continues inside `after_key`, after that upload. Without it, the page continues after
    the whole key.
    """
    start, end = start_key(prefix, delimiter, after_key), successor(prefix)
    if limit <= 0:
        return [], [], False
    within_key = after_number is not None and start == after_key + "\0"
    first = (after_key, after_number) if within_key else (start, -1)
    page = yield from scan_grouped(OPEN_UPLOADS, bucket_id, first, end, len(prefix), delimiter, limit)
    return list(map(Upload._make, page.rows)), page.prefixes, page.truncated
