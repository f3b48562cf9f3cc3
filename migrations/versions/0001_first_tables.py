"""The first tables: accounts, buckets, versions, multipart uploads, reference counts, discards, writers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

LISTED = ["size", "etag", "modified", "storage_class", "checksum_algorithm", "checksum_type"]
NUMBER = sa.Integer().with_variant(sa.BigInteger(), "postgresql")
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, nullable=False)


def _key(name: str) -> sa.Column[int]:
    return sa.Column(name, NUMBER, autoincrement=False, nullable=False)


def upgrade() -> None:
    """Create the tables and start the commit sequence."""
    _itself()
    _accounts()
    _objects()
    _multipart()
    op.execute("INSERT INTO sequence (id, value) VALUES (1, 0)")


def downgrade() -> None:
    """Raise NotImplementedError: there is no earlier revision."""
    raise NotImplementedError


def _itself() -> None:
    op.create_table(
        "meta",
        _text("name"),
        _text("value"),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sequence",
        _key("id"),
        _number("value"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "writers",
        _key("incarnation"),
        _text("state"),
        _text("lock_name"),
        sa.PrimaryKeyConstraint("incarnation"),
    )
    op.create_table(
        "id_ranges",
        _key("first"),
        _number("last"),
        _number("incarnation"),
        sa.PrimaryKeyConstraint("first"),
    )
    op.create_index("id_ranges_incarnation", "id_ranges", ["incarnation"], unique=False)


def _accounts() -> None:
    op.create_table(
        "accounts",
        _text("id"),
        _text("display_name"),
        _text("email"),
        _number("disabled"),
        _number("created"),
        sa.PrimaryKeyConstraint("id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "access_keys",
        _text("access_key"),
        _text("secret"),
        _text("account_id"),
        _number("disabled"),
        _number("created"),
        sa.PrimaryKeyConstraint("access_key"),
        sqlite_with_rowid=False,
    )
    op.create_index("access_keys_account", "access_keys", ["account_id"], unique=False)
    op.create_table(
        "buckets",
        _key("id"),
        _text("name"),
        _text("owner_id"),
        _text("region"),
        _number("created"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("buckets_name", "buckets", ["name"], unique=True)
    op.create_index("buckets_owner", "buckets", ["owner_id", "name"], unique=False)


def _objects() -> None:
    op.create_table(
        "versions",
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
        sa.PrimaryKeyConstraint("seq"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index(
            "versions_key",
            "versions",
            ["bucket_id", "key"],
            unique=True,
            postgresql_include=LISTED,
            postgresql_where=sa.text("state = 1"),
        )
    else:
        op.create_index(
            "versions_current",
            "versions",
            ["bucket_id", "key", *LISTED, "state"],
            unique=False,
            sqlite_where=sa.text("state = 1"),
        )
    op.create_index(
        "versions_others",
        "versions",
        ["bucket_id", "key", "seq", "state"],
        unique=False,
        sqlite_where=sa.text("state != 1"),
        postgresql_where=sa.text("state != 1"),
    )
    op.create_table(
        "shared",
        _text("body"),
        _number("holders"),
        sa.PrimaryKeyConstraint("body"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "discards",
        _key("id"),
        _text("body"),
        _number("queued"),
        sa.PrimaryKeyConstraint("id"),
    )


def _multipart() -> None:
    op.create_table(
        "uploads",
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
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "uploads_open",
        "uploads",
        ["bucket_id", "key", "id", "completed_seq"],
        unique=False,
        sqlite_where=sa.text("completed_seq = 0"),
        postgresql_where=sa.text("completed_seq = 0"),
    )
    op.create_table(
        "parts",
        _number("upload"),
        _number("number"),
        _number("size"),
        _text("etag"),
        _number("modified"),
        _text("checksum_algorithm"),
        _text("checksum"),
        _text("extents"),
        sa.PrimaryKeyConstraint("upload", "number"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "pieces",
        _number("upload"),
        _number("start"),
        _number("part_number"),
        _number("size"),
        _text("locator"),
        _number("blob_offset"),
        _text("checksum"),
        sa.PrimaryKeyConstraint("upload", "start", "part_number"),
        sqlite_with_rowid=False,
    )
    op.create_index("pieces_part", "pieces", ["upload", "part_number"], unique=False)
