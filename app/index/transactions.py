"""The transactions of each room by the name of what they change, for `Index`.

See `app.index.sql.transaction`.
"""

from __future__ import annotations

from sluice_s3.app.index.audit import transactions as audit
from sluice_s3.app.index.buckets import transactions as buckets
from sluice_s3.app.index.cluster import gateways, writers
from sluice_s3.app.index.cluster import transactions as cluster
from sluice_s3.app.index.iam import accounts, identities, uses
from sluice_s3.app.index.integrity import quarantine
from sluice_s3.app.index.journals import transactions as journals
from sluice_s3.app.index.lifecycle import transactions as lifecycle
from sluice_s3.app.index.logging import transactions as logging
from sluice_s3.app.index.meta import transactions as meta
from sluice_s3.app.index.multipart import transactions as multipart
from sluice_s3.app.index.notifications import transactions as notifications
from sluice_s3.app.index.object_lock import transactions as object_lock
from sluice_s3.app.index.objects import renames
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.packs import transactions as packs
from sluice_s3.app.index.plain_files import transactions as plain_files
from sluice_s3.app.index.reclaim import compaction, discards, refcounts
from sluice_s3.app.index.relocation import bucket_migration, transitions
from sluice_s3.app.index.restore import transactions as restore
from sluice_s3.app.index.versioning import transactions as versioning

__all__ = [
    "accounts",
    "audit",
    "bucket_migration",
    "buckets",
    "cluster",
    "compaction",
    "discards",
    "gateways",
    "identities",
    "journals",
    "lifecycle",
    "logging",
    "meta",
    "multipart",
    "notifications",
    "object_lock",
    "objects",
    "packs",
    "plain_files",
    "quarantine",
    "refcounts",
    "renames",
    "restore",
    "transitions",
    "uses",
    "versioning",
    "writers",
]
