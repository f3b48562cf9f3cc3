"""The schema: SQLAlchemy Core tables for SQLite, Postgres and Alembic.

Keys compare as UTF-8 bytes (SQLite `BINARY`, which is the default). Numbers that name rows (`seq`, upload, bucket,
writer, blob id, discard) are all drawn from the one commit sequence, so none is ever reused.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, Text, text

from sluice_s3.app.index.schema.columns import DEFAULT as DEFAULT
from sluice_s3.app.index.schema.columns import ByteOrderedText, Number
from sluice_s3.app.index.schema.columns import key as _key
from sluice_s3.app.index.schema.columns import metadata as metadata
from sluice_s3.app.index.schema.columns import number as _number
from sluice_s3.app.index.schema.columns import store as _store
from sluice_s3.app.index.schema.columns import text as _text
from sluice_s3.app.index.schema.identity_tables import access_keys as access_keys
from sluice_s3.app.index.schema.identity_tables import accounts as accounts
from sluice_s3.app.index.schema.identity_tables import identities as identities
from sluice_s3.app.index.schema.identity_tables import last_uses as last_uses
from sluice_s3.app.index.schema.identity_tables import memberships as memberships
from sluice_s3.app.index.schema.identity_tables import sessions as sessions

REVISION = "0013"
"""The migration that this code needs."""
OLDEST_REVISION = "0002"
"""The oldest migration whose data can be read: files of the first have no checks. No release contains the first."""
UNKNOWN_REVISION = "the index was made by a newer version of Sluice: {}"
"""The error for an index that Alembic refuses, with its reason."""

CURRENT, MARKER, NONCURRENT, OLD_MARKER = 1, 2, 0, 3
"""`versions.state`: the current object, a current delete marker, an older version, an older delete marker."""

UNVERSIONED, ENABLED, SUSPENDED = 0, 1, 2
"""`buckets.versioning`. A bucket that was ever versioned never becomes unversioned again."""

GROUP_BITS = 20
"""Postgres only: the number of low bits of a commit sequence number that count within one group."""

OPEN, ABORTED = 0, -1
"""`uploads.completed_seq` of an upload that no Complete has ended."""

ENGINE_ONLY = "only"
"""Name in the `info` of an index that only one engine has."""
ON_POSTGRES = "postgresql"
"""Name in the `info` of an index of its options on Postgres; see `set_postgres_options`."""

meta = Table(
    "meta",
    metadata,
    Column("name", ByteOrderedText, primary_key=True, nullable=False),
    _text("value"),
    sqlite_with_rowid=False,
)

sequence = Table("sequence", metadata, _key("id"), _number("value"))
"""One row: the last number drawn. Every transaction writes it, so it also tells whether one took effect."""

buckets = Table(
    "buckets",
    metadata,
    _key("id"),
    _text("name"),
    _text("owner_id"),
    _text("region"),
    _number("created"),
    _store(),
    Column("source", ByteOrderedText, nullable=False, server_default=""),
    Column("moved", Number, nullable=False, server_default="0"),
    Column("settings", Text, nullable=False, server_default=""),
    Column("versioning", Number, nullable=False, server_default="0"),
    Index("buckets_name", "name", unique=True),
    Index("buckets_owner", "owner_id", "name"),
)
"""`store` is the store for new data. `source` is the store from which older data is being moved, or empty. `moved` is
the commit sequence number at which the last move of the bucket began or ended: see app/jobs/journals/rebuild.py.
`settings` is a JSON object, empty when nothing was ever configured, so that the row of a bucket has everything that
a request needs. `versioning` has a column of its own, because every write needs it inside its transaction."""

LISTED = ("size", "etag", "modified", "storage_class", "checksum_algorithm", "checksum_type")
"""Columns of a version that a listing shows beside its key."""

versions = Table(
    "versions",
    metadata,
    _key("seq"),
    _number("bucket_id"),
    _text("key"),
    _text("version_id"),
    _number("state"),
    _number("modified"),
    _number("size"),
    _text("etag"),
    _text("headers"),
    _text("storage_class"),
    _text("checksum_algorithm"),
    _text("checksum_type"),
    _text("checksum"),
    _text("body"),
    _number("parts"),
    _text("owner_id"),
    # covers a listing, which then reads the index alone. On SQLite, transactions run one at a time and so keep one
    # current version per key: another unique index would add to the cost of every PUT
    Index(
        "versions_current",
        "bucket_id",
        "key",
        *LISTED,
        "state",  # SQLite counts an index as covering only when it also has the column of its condition
        sqlite_where=text("state = 1"),
        info={ENGINE_ONLY: "sqlite"},
    ).ddl_if(dialect="sqlite"),
    # Postgres can include the columns of a listing, so this index also enforces one current version per key
    Index(
        "versions_key",
        "bucket_id",
        "key",
        unique=True,
        info={ENGINE_ONLY: "postgresql", ON_POSTGRES: {"include": LISTED, "where": text("state = 1")}},
    ).ddl_if(dialect="postgresql"),
    # newest first, as in a listing; a version's id holds the time by which this index finds it
    Index(
        "versions_others",
        "bucket_id",
        "key",
        text("modified DESC"),
        "state",
        sqlite_where=text("state != 1"),
        info={ON_POSTGRES: {"where": text("state != 1")}},
    ),
    # the id `null` holds no time
    Index(
        "versions_null",
        "bucket_id",
        "key",
        sqlite_where=text("state != 1 AND version_id = 'null'"),
        info={ON_POSTGRES: {"where": text("state != 1 AND version_id = 'null'")}},
    ),
)
"""Of two versions of a key, the one with the later `modified` is newer. Under the key's lock, a new version gets a
later time than all existing ones, whatever the clock says. `seq` gives no order, because a version gets a new one
with other headers. Exactly one version of a key is CURRENT or MARKER: the newest."""

uploads = Table(
    "uploads",
    metadata,
    _key("id"),
    _text("upload_id"),
    _number("bucket_id"),
    _text("key"),
    _number("initiated"),
    _text("headers"),
    _text("storage_class"),
    _text("checksum_algorithm"),
    _text("checksum_type"),
    _text("owner_id"),
    _number("completed_seq"),
    _text("completed_version_id"),
    _number("completed_modified"),
    Index(
        "uploads_open",
        "bucket_id",
        "key",
        "id",
        "completed_seq",
        sqlite_where=text("completed_seq = 0"),
        info={ON_POSTGRES: {"where": text("completed_seq = 0")}},
    ),
)
"""A row stays after Complete, so that Complete can be retried, until the completed body is expanded."""

parts = Table(
    "parts",
    metadata,
    _number("upload"),
    _number("number"),
    _number("size"),
    _text("etag"),
    _number("modified"),
    _text("checksum_algorithm"),
    _text("checksum"),
    _text("extents"),
    PrimaryKeyConstraint("upload", "number"),
    sqlite_with_rowid=False,
)
"""Parts of open or aborted uploads. `extents` is JSON: a list of [locator, offset, size], both numbers in bytes."""

pieces = Table(
    "pieces",
    metadata,
    _number("upload"),
    _number("start"),
    _number("part_number"),
    _number("size"),
    _text("locator"),
    _number("blob_offset"),
    _text("checksum"),
    PrimaryKeyConstraint("upload", "start", "part_number"),
    Index("pieces_part", "upload", "part_number"),
    sqlite_with_rowid=False,
)
"""Pieces of completed objects. `checksum` is that of the part, on its first piece. A part of 0 bytes has one piece
without a locator."""

blob_refcounts = Table(
    "shared",
    metadata,
    Column("body", ByteOrderedText, primary_key=True, nullable=False),
    _number("holders"),
    sqlite_with_rowid=False,
)
"""Reference counts of bodies that several rows hold. A body without a row here has one holder."""

discards = Table("discards", metadata, _key("id"), _text("body"), _number("queued"))
"""The discard queue: unreferenced bodies."""

packs = Table(
    "packs",
    metadata,
    _key("id"),
    _number("incarnation"),
    _number("sealed"),
    _number("size"),
    _number("dead"),
    _store(),
    Index("packs_incarnation", "incarnation"),
)
"""Files of many small blobs. `incarnation` is the writer. `size` in bytes is known once the pack is sealed. `dead`
counts bytes of records that no row holds any more. The count never exceeds the truth."""

SEALED, RETIRED, SWEPT = 1, 2, 3
"""`packs.sealed`, 0 while the pack is written. SEALED: nothing is added any more. RETIRED: no row holds any of it, and
it is to be unlinked. SWEPT: sealed for a dead writer, and its uncommitted records are not counted dead yet."""

tombstones = Table(
    "removals",
    metadata,
    _key("seq"),
    _text("kind"),
    _number("bucket_id"),
    _text("key"),
    _number("at"),
    Column("store", ByteOrderedText, nullable=False, server_default=""),
    Column("version_id", ByteOrderedText, nullable=False, server_default="null"),
)
"""Changes that leave no other row and must be journaled: deleted versions (`object`), blobs whose commit was
refused (`blob`, with the locator as the key, and the store of the blob), and writers that ended (`writer`)."""

journals = Table(
    "journals",
    metadata,
    _key("id"),
    _number("snapshot"),
    _number("bytes"),
    _number("rows"),
    _store(),
)
"""Journals: files beside the data that hold what the index committed. `snapshot` is 0 for changes, 1 for an incomplete
snapshot, 2 for a complete one."""

intents = Table(
    "intents",
    metadata,
    _key("id"),
    _number("incarnation"),
    _number("bucket_id"),
    _text("key"),
    _text("kind"),
    _text("body"),
    _number("blob_id"),
    _number("upload"),
    _text("new"),
    _text("parts"),
    Index("intents_key", "bucket_id", "key", unique=True),
    Index("intents_incarnation", "incarnation"),
)
"""Write intents on plain files. One per key, which it locks."""

unhashed = Table("unhashed", metadata, _key("seq"))
"""Versions of plain files that other programs made, whose ETag is not their MD5 yet."""

quarantine = Table(
    "quarantine",
    metadata,
    Column("locator", ByteOrderedText, primary_key=True, nullable=False),
    _text("reason"),
    _number("found"),
    sqlite_with_rowid=False,
)
"""Damaged blobs."""

outbox = Table(
    "outbox",
    metadata,
    _key("id"),
    _text("target"),
    _number("bucket_id"),
    _text("key"),
    _number("at"),
    Column("message", Text, nullable=False),
    Index("outbox_target", "target", "id"),
)
"""Messages of changes to send, each written in the transaction of its change. `id` orders those of one key."""

log_rows = Table("log_rows", metadata, _key("id"), _number("bucket_id"), _text("bucket"), _number("at"), _text("lines"))
"""Lines of server access logs that wait to become an object. One row holds what a process collected in a while."""

audit_events = Table(
    "audit_events",
    metadata,
    _key("id"),
    _number("at"),
    _text("principal"),
    _text("account_id"),
    _text("access_key"),
    _text("address"),
    _text("source"),
    _text("action"),
    _text("resource"),
    _text("outcome"),
    _text("request_id"),
    Column("detail", Text, nullable=False),
    Index("audit_events_at", "at", "id"),
)
"""Administrative changes and refused ones. `detail` is a JSON object or empty: what was changed, before and after."""

writers = Table("writers", metadata, _key("incarnation"), _text("state"), _text("lock_name"))

id_ranges = Table(
    "id_ranges",
    metadata,
    _key("first"),
    _number("last"),
    _number("incarnation"),
    Index("id_ranges_incarnation", "incarnation"),
)

operations = Table("operations", metadata, _key("id"), _number("at"), _number("number"))
"""Postgres only: recently committed groups, by an id that their writer chose, with the number that they drew. A writer
that does not know whether its commit took effect inserts the id, too: of the two inserts the second fails."""

heartbeats = Table("heartbeats", metadata, _key("incarnation"), _number("number"), _number("settled"))
"""Postgres only: heartbeats of writers, by which other hosts observe them. Every request that runs in the writer's
server began after its heartbeat `settled`: see `app.index.postgres.heartbeat`."""

leases = Table(
    "leases",
    metadata,
    Column("name", ByteOrderedText, primary_key=True, nullable=False),
    _number("holder"),
    _number("term"),
    sqlite_with_rowid=False,
)
"""Postgres only: the incarnation that holds each lease, 0 for none. `term` counts how often it was taken."""


def set_postgres_options() -> None:
    """Set the options of indexes on Postgres, for Alembic.

    SQLAlchemy loads the dialect to check them: a twentieth of the imports of a server, which never needs them.
    """
    for table in metadata.tables.values():
        for index in table.indexes:
            for name, value in index.info.get(ON_POSTGRES, {}).items():
                index.kwargs[f"postgresql_{name}"] = value
