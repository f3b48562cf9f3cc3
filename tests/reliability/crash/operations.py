"""The operations that change something, each as a preparation and an act that may be cut short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from tests.reliability.crash.scene import BUCKET

Act = Callable[[], object]

OLD = b"old" * 1000
NEW = b"new" * 1000
LARGE = b"large" * 500_000
"""More than one piece, so that it takes the way of a streamed body."""
PART = b"p" * (5 << 20)


def put_new(s3: Any, key: str) -> Act:
    """A key that was never there."""
    return lambda: s3.put_object(Bucket=BUCKET, Key=key, Body=NEW)


def overwrite(s3: Any, key: str) -> Act:
    """Streamed over an object that is there."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    return lambda: s3.put_object(Bucket=BUCKET, Key=key, Body=LARGE)


def overwrite_empty(s3: Any, key: str) -> Act:
    """An object without a blob over one with."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    return lambda: s3.put_object(Bucket=BUCKET, Key=key, Body=b"")


def delete(s3: Any, key: str) -> Act:
    """DeleteObject."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    return lambda: s3.delete_object(Bucket=BUCKET, Key=key)


def delete_many(s3: Any, key: str) -> Act:
    """DeleteObjects of one key."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    return lambda: s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key}]})


def copy(s3: Any, key: str) -> Act:
    """Over an object that is there."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    s3.put_object(Bucket=BUCKET, Key=f"source of {key}", Body=NEW)
    return lambda: s3.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": f"source of {key}"})


def upload_part(s3: Any, key: str) -> Act:
    """The first part."""
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    return lambda: s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, Body=NEW)


def replace_part(s3: Any, key: str) -> Act:
    """A part that was there."""
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, Body=OLD)
    return lambda: s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, Body=LARGE)


def copy_part(s3: Any, key: str) -> Act:
    """A part made of another object's bytes."""
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    s3.put_object(Bucket=BUCKET, Key=f"source of {key}", Body=NEW)
    source = {"Bucket": BUCKET, "Key": f"source of {key}"}
    return lambda: s3.upload_part_copy(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, CopySource=source)


def complete(s3: Any, key: str) -> Act:
    """Two parts over an object that is there."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    parts = [
        {
            "PartNumber": number,
            "ETag": s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=number, Body=body)["ETag"],
        }
        for number, body in ((1, PART), (2, NEW))
    ]
    return lambda: s3.complete_multipart_upload(
        Bucket=BUCKET, Key=key, UploadId=upload_id, MultipartUpload={"Parts": parts}
    )


def abort(s3: Any, key: str) -> Act:
    """An upload with a part."""
    upload_id = s3.create_multipart_upload(Bucket=BUCKET, Key=key)["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key=key, UploadId=upload_id, PartNumber=1, Body=OLD)
    return lambda: s3.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload_id)


def append(s3: Any, key: str) -> Act:
    """A few bytes behind an object that is there."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    return lambda: s3.put_object(Bucket=BUCKET, Key=key, Body=NEW, WriteOffsetBytes=len(OLD))


def append_streamed(s3: Any, key: str) -> Act:
    """Many bytes behind an object of two parts."""
    append(s3, key)()
    return lambda: s3.put_object(Bucket=BUCKET, Key=key, Body=LARGE, WriteOffsetBytes=len(OLD) + len(NEW))


def rename(s3: Any, key: str) -> Act:
    """Another object to a key where there is one."""
    s3.put_object(Bucket=BUCKET, Key=key, Body=OLD)
    s3.put_object(Bucket=BUCKET, Key=f"source of {key}", Body=NEW)
    token = key.replace(" ", "-")[-64:]
    return lambda: s3.rename_object(Bucket=BUCKET, Key=key, RenameSource=quote(f"source of {key}"), ClientToken=token)


FILE_POINTS = ("put.created", "put.written", "put.synced", "put.closed", "put.directory_synced")
"""Of a body with a file of its own."""
RECORD_POINTS = ("pack.created", "pack.written", "pack.synced")
"""Of a small one, which goes into a pack."""
COMMIT_POINTS = ("index.commit", "index.committed")
WRITE_POINTS = ("store.durable", *COMMIT_POINTS, "store.committed")
COMMITTED = {"index.committed", "store.committed"}
"""Points behind the one that decides: from here on the new state must be found."""

CASES: list[tuple[Callable[[Any, str], Act], str]] = [
    *((operation, point) for operation in (put_new, upload_part) for point in (*RECORD_POINTS, *WRITE_POINTS)),
    *((operation, point) for operation in (overwrite, replace_part) for point in (*FILE_POINTS, *WRITE_POINTS)),
    *(
        (operation, point)
        for operation in (overwrite_empty, delete, delete_many, copy, copy_part, complete, abort, rename)
        for point in COMMIT_POINTS
    ),
    *((append, point) for point in (*RECORD_POINTS, *COMMIT_POINTS)),
    *((append_streamed, point) for point in (*FILE_POINTS, *COMMIT_POINTS)),
]
STAGE_POINTS = ("put.created", "put.written", "put.synced", "put.closed", "tree.staged")
"""Of a body on its way to a plain file."""
PUBLISH_POINTS = ("tree.begun", "publish.made", "publish.renamed", "publish.synced", "tree.published")
REMOVE_POINTS = ("tree.begun", "remove.unlinked", "remove.synced", "tree.removed")
DONE = {"publish.renamed", "publish.synced", "tree.published", "tree.committed"} | set(REMOVE_POINTS[1:])
"""Points of plain files behind the one that decides: what was begun is done when the process is back."""
TREE_CASES: list[tuple[Callable[[Any, str], Act], str]] = [
    *((put_new, point) for point in (*STAGE_POINTS, *PUBLISH_POINTS, *COMMIT_POINTS, "tree.committed")),
    *(
        (operation, point)
        for operation in (overwrite, overwrite_empty, copy, complete)
        for point in (
            "tree.staged",
            "tree.begun",
            "publish.renamed",
            "publish.synced",
            "tree.published",
            *COMMIT_POINTS,
        )
    ),
    *((delete, point) for point in (*REMOVE_POINTS, *COMMIT_POINTS)),
    (delete_many, "remove.unlinked"),
]
GARBAGE_POINTS = ("discard.unlinked", "discard.synced", "garbage.discarded", "index.commit", "index.committed")
MOVE_POINTS = ("move.copied", "move.swapped", "move.ended")
"""Of a bucket's move to another store: `tests/unit/jobs/test_bucket_migration.py`."""
COMPACTION_POINTS = ("compact.appended", "compact.moved", "compact.buried", "compact.retired")
DECISION_POINTS = ("decisions.announced", "decisions.written", "decisions.moved")
TREE_SWEEP_POINTS = ("sweep.declared", "sweep.recovered", "sweep.swept")
SWEEP_POINTS = ("sweep.declared", "discard.unlinked", "discard.synced", "sweep.swept")
