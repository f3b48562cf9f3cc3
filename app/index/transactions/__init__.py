"""The transactions of the index, as generators without an engine.

See `app.index.sql.transaction`.
"""

from __future__ import annotations

from sluice_s3.app.index.transactions import (
    accounts,
    bucket_moves,
    buckets,
    cluster,
    compaction,
    discards,
    identities,
    journals,
    lifecycle,
    multipart,
    objects,
    outbox,
    packs,
    plain_files,
    renames,
    restores,
    transitions,
    versions,
    writers,
)

__all__ = [
    "accounts",
    "bucket_moves",
    "buckets",
    "cluster",
    "compaction",
    "discards",
    "identities",
    "journals",
    "lifecycle",
    "multipart",
    "objects",
    "outbox",
    "packs",
    "plain_files",
    "renames",
    "restores",
    "transitions",
    "versions",
    "writers",
]
