"""Building blocks of tables: column types that both engines have, and the common metadata."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, MetaData, Text

metadata = MetaData()

DEFAULT = "default"
"""The store whose blobs have locators without a store name."""

# SQLite makes INTEGER PRIMARY KEY the rowid, but not BIGINT; Postgres needs the 64 bits
Number = Integer().with_variant(BigInteger(), "postgresql")
# compares bytes as SQLite does, in every locale of the database
ByteOrderedText = Text().with_variant(Text(collation="C"), "postgresql")


def text(name: str) -> Column[str]:
    """Return a column of text."""
    return Column(name, ByteOrderedText, nullable=False)


def name_key(name: str) -> Column[str]:
    """Return a column of text that is the primary key, or a part of it."""
    return Column(name, ByteOrderedText, primary_key=True, nullable=False)


def number(name: str) -> Column[int]:
    """Return a column of numbers."""
    return Column(name, Number, nullable=False)


def store(name: str = "store") -> Column[str]:
    """Return a column with the name of a store."""
    return Column(name, ByteOrderedText, nullable=False, server_default=DEFAULT)


def key(name: str) -> Column[int]:
    """Return a column of numbers that is the primary key."""
    return Column(name, Number, primary_key=True, autoincrement=False)
