"""The statements of versioned buckets.

`state != 1` and the like are literals, as in `app.index.objects.statements`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, literal_column, select, update

from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.objects.statements import IS_CURRENT
from sluice_s3.app.index.schema.tables import buckets, versions
from sluice_s3.app.index.sql.builder import LIMIT, NO_OFFSET, columns, new_values, number, text
from sluice_s3.app.index.sql.transaction import Statement
from sluice_s3.app.index.versioning.rows import ListedVersionEntry

IS_OTHER = versions.c.state != literal_column("1")
IS_NULL = versions.c.version_id == literal_column("'null'")
IS_OF_KEY = (versions.c.bucket_id == number("bucket"), versions.c.key == text("name"))

STORED = ("seq", "version_id", "state", "etag", "size", "modified", "body", "headers")
"""The columns that a change reads of a version."""


def _found(fields: tuple[str, ...], *conditions: ColumnElement[Any]) -> Statement:
    return Statement(select(*columns(versions, fields)).where(*IS_OF_KEY, *conditions))


# one version of a key; versions that are not current are found by the time in their id
CURRENT_OF = _found(STORED, IS_CURRENT)
NULL_OF = _found(STORED, IS_OTHER, IS_NULL)
OTHER_OF = _found(STORED, versions.c.modified == number("at"), versions.c.version_id == text("version"), IS_OTHER)
NULL_VERSION_OF = _found(Version._fields, IS_OTHER, IS_NULL)
OTHER_VERSION = _found(
    Version._fields, versions.c.modified == number("at"), versions.c.version_id == text("version"), IS_OTHER
)
NEWEST_OTHER = Statement(
    select(*columns(versions, STORED))
    .where(*IS_OF_KEY, IS_OTHER)
    .order_by(versions.c.modified.desc())
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
NEWEST_OTHER_VERSION = Statement(
    select(*columns(versions, Version._fields), versions.c.state)
    .where(*IS_OF_KEY, IS_OTHER)
    .order_by(versions.c.modified.desc())
    .limit(literal_column("1"))
    .offset(NO_OFFSET)
)
SET_STATE = Statement(
    update(versions).values(**new_values(versions, "state")).where(versions.c.seq == number("version"))
)

VERSIONING = Statement(
    select(buckets.c.versioning, buckets.c.owner_id, buckets.c.settings).where(buckets.c.id == number("bucket"))
)
SET_VERSIONING = Statement(
    update(buckets).values(**new_values(buckets, "versioning")).where(buckets.c.id == number("bucket"))
)

# listings
_FROM_TO = (
    versions.c.bucket_id == number("bucket"),
    versions.c.key >= text("first"),
    versions.c.key < text("end"),
)
NEWEST_FIRST = versions.c.modified.desc()


def _listing(conditions: tuple[ColumnElement[Any], ...], *order: ColumnElement[Any], more: str = "") -> Statement:
    fields = (*ListedVersionEntry._fields, *more.split())
    return Statement(
        select(*columns(versions, fields)).where(*conditions).order_by(*order).limit(LIMIT).offset(NO_OFFSET)
    )


class Listings(NamedTuple):
    """Statements of a listing of all versions."""

    current: Statement
    others: Statement
    of_key: Statement
    """Versions of a key that are older than a time."""


def _listings(more: str = "") -> Listings:
    older = (*IS_OF_KEY, versions.c.modified < number("before"), IS_OTHER)
    return Listings(
        _listing((*_FROM_TO, IS_CURRENT), versions.c.key, more=more),
        _listing((*_FROM_TO, IS_OTHER), versions.c.key, NEWEST_FIRST, more=more),
        _listing(older, NEWEST_FIRST, more=more),
    )


LISTINGS = LIST_CURRENT_VERSIONS, LIST_OTHERS, LIST_OTHERS_OF_KEY = _listings()
LISTINGS_WITH_HEADERS = _listings("headers")
