"""Operations that a server procedure can run, too.

See `app.index.postgres.procedure_calls`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.versioning.rows import Deletion


class Procedure(IntEnum):
    """The way in which an operation runs.

    A group has one kind.
    """

    NONE = 0
    """As a transaction."""
    PUT = 1
    DELETE = 2


def put_procedure(bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None) -> Procedure:
    """Return PUT unless a condition needs more than the ETag."""
    plain = conditions is None or (conditions.if_match_size is conditions.if_match_modified is conditions.dated is None)
    return Procedure.PUT if plain else Procedure.NONE


def delete_procedure(
    bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None, bypass: bool
) -> Procedure:
    """Return DELETE for the current object of a key, without conditions."""
    return Procedure.DELETE if version_id is None and conditions is None else Procedure.NONE


def deletes_procedure(bucket_id: int, entries: Sequence[Deletion]) -> Procedure:
    """Return DELETE if that holds for every entry and no key occurs twice."""
    plain = all(entry.version_id is None and entry.conditions == Conditions() for entry in entries)
    return Procedure.DELETE if plain and len({entry.key for entry in entries}) == len(entries) else Procedure.NONE
