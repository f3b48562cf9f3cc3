"""What goes through rows that are too many for memory, on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from sluice_s3.app.index import reference_queries
from sluice_s3.app.index.rows import Pack
from sluice_s3.app.index.schema.tables import SEALED, SWEPT
from sluice_s3.app.index.sqlite import runner
from sluice_s3.app.index.sqlite.connection import all_rows
from sluice_s3.app.index.transactions.packs import all_packs


def referenced_bytes(
    connection: apsw.Connection, prefixes: Sequence[str], size_of: Callable[[str], int]
) -> dict[str, int]:
    """Bytes of what is held of packs whose locators begin so."""
    found: dict[str, int] = {}
    query, wanted = reference_queries.REFERENCED_LOCATORS.given(prefixes=prefixes)
    for prefix, locator in connection.execute(query.sql, wanted):
        found[prefix] = found.get(prefix, 0) + size_of(locator)
    return found


def live_bytes_per_pack(
    connection: apsw.Connection, packed: Callable[[str], tuple[int, int] | None]
) -> list[tuple[Pack, int]]:
    """Each sealed pack whose writer is gone, and how many bytes of it rows and the discard queue hold, in one state.

    Packs of living writers are left out: commits that name their records may be on their way.
    """
    connection.execute("BEGIN")
    try:
        written = {number for (number,) in all_rows(connection, reference_queries.WRITTEN.sql)}
        packs = [pack for pack in runner.read(connection.cursor(), all_packs()) if pack.sealed in (SEALED, SWEPT)]
        shared = {body for (body,) in all_rows(connection, "SELECT body FROM shared")}
        live: dict[int, int] = {}
        for (locator,) in connection.execute(reference_queries.PACKED_LOCATORS.sql):
            if locator in shared:
                continue
            place = packed(locator)
            if place is not None:
                live[place[0]] = live.get(place[0], 0) + place[1]
        for locator in shared:
            place = packed(locator)
            if place is not None:
                live[place[0]] = live.get(place[0], 0) + place[1]
    finally:
        connection.execute("ROLLBACK")
    return [(pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written]
