"""What a bucket refuses while the journals of its store cannot be written: see `app.jobs.journals.health`."""

from __future__ import annotations

from sluice_s3.app.errors import StoreFull, StoreUnavailable
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store.store import JournalFailure

READS = frozenset({"GET", "HEAD", "OPTIONS"})
DELETES = frozenset({"DeleteObject", "DeleteObjects", "AbortMultipartUpload"})


def require_journals(request: S3Request, operation: str, failure: JournalFailure | None) -> None:
    """Raise StoreUnavailable or StoreFull for a change that would be lost with the index. Reads pass.

    On a full disk deletes pass too, since they free space.
    """
    if failure is None or request.method in READS or (failure.full and operation in DELETES):
        return
    raise StoreFull() if failure.full else StoreUnavailable(reason=failure.reason)
