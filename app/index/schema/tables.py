"""The one schema: SQLAlchemy Core tables for SQLite, Postgres and Alembic.

Keys compare as UTF-8 bytes (SQLite `BINARY`, which is the default). Numbers that name rows (`seq`, upload, bucket,
writer, blob id, discard) are all drawn from the one commit sequence, so none is ever used twice.
"""

from __future__ import annotations

from sqlalchemy import Column, Index, PrimaryKeyConstraint, Table, Text, text

from sluice_s3.app.index.schema.columns import DEFAULT as DEFAULT
from sluice_s3.app.index.schema.columns import Number, Words
from sluice_s3.app.index.schema.columns import key as _key
from sluice_s3.app.index.schema.columns import metadata as metadata
from sluice_s3.app.index.schema.columns import number as _number
from sluice_s3.app.index.schema.columns import store as _store
from sluice_s3.app.index.schema.columns import text as _text
from sluice_s3.app.index.schema.identity_tables import access_keys as access_keys
from sluice_s3.app.index.schema.identity_tables import accounts as accounts
from sluice_s3.app.index.schema.identity_tables import identities as identities
from sluice_s3.app.index.schema.identity_tables import memberships as memberships
from sluice_s3.app.index.schema.identity_tables import sessions as sessions

REVISION = "0011"
"""The migration that this code needs."""
UNKNOWN_REVISION = "the index was made by a newer version of Sluice: {}"
"""What is said of an index that Alembic refuses, with its reason."""

CURRENT, MARKER, NONCURRENT, OLD_MARKER = 1, 2, 0, 3
"""`versions.state`: the current object, a current delete marker, an older version, an older delete marker."""

UNVERSIONED, ENABLED, SUSPENDED = 0, 1, 2
"""`buckets.versioning`. A bucket that was ever versioned is never unversioned again."""

GROUP_BITS = 20
"""Postgres only: how many bits of a number of the commit sequence count within one group of changes."""

OPEN, ABORTED = 0, -1
"""`uploads.completed_seq` of an upload that no Complete has ended."""

ENGINE_ONLY = "only"
"""In `info` of what one engine alone has."""

meta = Table(
    "meta",
    metadata,
    Column("name", Words, primary_key=True, nullable=False),
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
    Column("source", Words, nullable=False, server_default=""),
    Column("moved", Number, nullable=False, server_default="0"),
    Column("settings", Text, nullable=False, server_default=""),
    Column("versioning", Number, nullable=False, server_default="0"),
    Index("buckets_name", "name", unique=True),
    Index("buckets_owner", "owner_id", "name"),
)
"""`store` is where what is written goes, `source` the store that older data is moved from (or empty). `moved` is the
number of the commit sequence at which a move of it last began or ended: see app/jobs/journals/rebuild.py. `settings`
is a JSON object, empty when nothing was ever configured, so that the row of a bucket has all that a request must know
of it.
`versioning` has a column of its own, because every write must know it inside its transaction."""

LISTED = ("size", "etag", "modified", "storage_class", "checksum_algorithm", "checksum_type")
"""What a listing shows of a version beside its key."""

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
    # all that a listing shows, so that it reads the index alone. One current version a key is kept by the transactions,
    # which are alone on SQLite: a unique index beside this one would cost every PUT again
    Index(
        "versions_current",
        "bucket_id",
        "key",
        *LISTED,
        "state",  # SQLite counts an index as covering only when it has the column of its own condition too
        sqlite_where=text("state = 1"),
        info={ENGINE_ONLY: "sqlite"},
    ).ddl_if(dialect="sqlite"),
    # Postgres can have what a listing shows beside the key, and so keep one current version a key by this index
    Index(
        "versions_key",
        "bucket_id",
        "key",
        unique=True,
        postgresql_include=LISTED,
        postgresql_where=text("state = 1"),
        info={ENGINE_ONLY: "postgresql"},
    ).ddl_if(dialect="postgresql"),
    # newest first, as they are listed; a version's id tells the time that it is found by here
    Index(
        "versions_others",
        "bucket_id",
        "key",
        text("modified DESC"),
        "state",
        sqlite_where=text("state != 1"),
        postgresql_where=text("state != 1"),
    ),
    # the id `null` tells no time
    Index(
        "versions_null",
        "bucket_id",
        "key",
        sqlite_where=text("state != 1 AND version_id = 'null'"),
        postgresql_where=text("state != 1 AND version_id = 'null'"),
    ),
)
"""Newer of two versions of a key is the one whose `modified` is later: under the key's lock a new one is given a later
time than all that are there, whatever the clock says. `seq` is drawn anew when a version gets other headers, and so
does not tell. Exactly one version of a key is CURRENT or MARKER: the newest."""

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
        postgresql_where=text("completed_seq = 0"),
    ),
)
"""Stays after Complete, so that Complete can be asked again, until the body it made is expanded."""

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
"""Parts of uploads that are open or aborted. `extents` is JSON: a list of [locator, offset, size]."""

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
"""What completed objects are made of. `checksum` is the part's, on its first piece; a part of 0 bytes has one piece
without a locator."""

blob_refcounts = Table(
    "shared",
    metadata,
    Column("body", Words, primary_key=True, nullable=False),
    _number("holders"),
    sqlite_with_rowid=False,
)
"""Bodies that more than one row holds, and by how many; a body without a row here has one holder."""

discards = Table("discards", metadata, _key("id"), _text("body"), _number("queued"))
"""Bodies that no row holds."""

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
"""Files of many small blobs. `incarnation` wrote or writes it; `size` is known once it is sealed; `dead` counts bytes
of records that no row holds any more. The count never exceeds the truth."""

SEALED, RETIRED, SWEPT = 1, 2, 3
"""`packs.sealed`, 0 while it is written. SEALED: nothing is added any more. RETIRED: no row holds any of it and it is
to be unlinked. SWEPT: sealed for a writer that died, and what it never committed is not counted dead yet."""

tombstones = Table(
    "removals",
    metadata,
    _key("seq"),
    _text("kind"),
    _number("bucket_id"),
    _text("key"),
    _number("at"),
    Column("store", Words, nullable=False, server_default=""),
    Column("version_id", Words, nullable=False, server_default="null"),
)
"""What leaves no row behind and must be written down beside the data: versions that were deleted (`object`), and blobs
whose commit was refused (`blob`, its locator as the key, and the store that it lies in)."""

journals = Table(
    "journals",
    metadata,
    _key("id"),
    _number("snapshot"),
    _number("bytes"),
    _number("rows"),
    _store(),
)
"""Files beside the data that say what the index decided. `snapshot` is 0 for changes, 1 for a snapshot that is not
whole yet, 2 for one that is."""

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
"""What is being done to plain files (layout *tree*). One a key: it locks it."""

unhashed = Table("unhashed", metadata, _key("seq"))
"""Versions of plain files that others made, whose ETag is not their MD5 yet."""

quarantine = Table(
    "quarantine",
    metadata,
    Column("locator", Words, primary_key=True, nullable=False),
    _text("reason"),
    _number("found"),
    sqlite_with_rowid=False,
)
"""Blobs that were found damaged."""

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
"""Messages of changes that are to be sent, each written in the transaction of its change. Those of a key have their
order by `id`."""

log_rows = Table("log_rows", metadata, _key("id"), _number("bucket_id"), _text("bucket"), _number("at"), _text("lines"))
"""Lines of server access logs on their way to an object; one row for what a process collected in a while."""

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
"""Postgres only: groups of changes that were committed of late, by an id that their writer chose, with the number that
they drew. Who cannot know whether a commit took effect enters its id too: of the two the second fails."""

heartbeats = Table("heartbeats", metadata, _key("incarnation"), _number("number"), _number("settled"))
"""Postgres only: signs of life of writers, which other hosts cannot see in another way. Every request that runs where
the writer is began after its sign `settled`: see `app.index.postgres.heartbeat`."""

leases = Table(
    "leases",
    metadata,
    Column("name", Words, primary_key=True, nullable=False),
    _number("holder"),
    _number("term"),
    sqlite_with_rowid=False,
)
"""Postgres only: what only one process may do, and the incarnation of the one that does, 0 for none. `term` counts how
often it was taken."""
