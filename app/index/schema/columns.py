"""What tables are made of: types of columns that both engines have, and the metadata that all tables are in."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, MetaData, Text

metadata = MetaData()

DEFAULT = "default"
"""The store whose blobs have locators without a name."""

# SQLite makes INTEGER PRIMARY KEY the rowid and BIGINT not; Postgres needs the 64 bits
Number = Integer().with_variant(BigInteger(), "postgresql")
# as SQLite compares: by bytes, whatever the language of the database
Words = Text().with_variant(Text(collation="C"), "postgresql")


def text(name: str) -> Column[str]:
    """A column of text."""
    return Column(name, Words, nullable=False)


def name_key(name: str) -> Column[str]:
    """A column of text that is the primary key, or a part of it."""
    return Column(name, Words, primary_key=True, nullable=False)


def number(name: str) -> Column[int]:
    """A column of numbers."""
    return Column(name, Number, nullable=False)


def store(name: str = "store") -> Column[str]:
    """The name of a store."""
    return Column(name, Words, nullable=False, server_default=DEFAULT)


def key(name: str) -> Column[int]:
    """A number that is the primary key."""
    return Column(name, Number, primary_key=True, autoincrement=False)
