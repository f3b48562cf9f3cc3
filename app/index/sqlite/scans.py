"""Reads of more rows than fit into memory, on a connection of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.packs.transactions import all_packs
from sluice_s3.app.index.reclaim import queries as reference_queries
from sluice_s3.app.index.schema.tables import SEALED, SWEPT
from sluice_s3.app.index.sqlite import runner
from sluice_s3.app.index.sqlite.connection import all_rows


def referenced_bytes(
    connection: apsw.Connection, prefixes: Sequence[str], size_of: Callable[[str], int]
) -> dict[str, int]:
    """Return the referenced bytes of packs by the prefix of their locators."""
    sizes: dict[str, int] = {}
    query, values = reference_queries.REFERENCED_LOCATORS.bind(prefixes=prefixes)
    for prefix, locator in connection.execute(query.sql, values):
        sizes[prefix] = sizes.get(prefix, 0) + size_of(locator)
    return sizes


def live_bytes_per_pack(
    connection: apsw.Connection, packed: Callable[[str], tuple[int, int] | None]
) -> list[tuple[Pack, int]]:
    """Return each sealed pack without a live writer, and the number of its live bytes.

    Live bytes are those that rows or the discard queue hold. Reads one snapshot. Packs of live writers are left out,
    because commits that name their records may be in progress.
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
            location = packed(locator)
            if location is not None:
                live[location[0]] = live.get(location[0], 0) + location[1]
        for locator in shared:
            location = packed(locator)
            if location is not None:
                live[location[0]] = live.get(location[0], 0) + location[1]
    finally:
        connection.execute("ROLLBACK")
    return [(pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written]
