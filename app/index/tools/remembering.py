"""Additions to a rebuilt index (always SQLite) beside its rows: notes, and space to keep."""

from __future__ import annotations

from sluice_s3.app.index.restore_state import MARK, PREFIX, restore_meta_value

REMEMBERED = f"""
INSERT OR REPLACE INTO main.meta
    SELECT '{PREFIX}' || bucket_id || ':' || version_id || ':' || key, '{restore_meta_value(0)}'
    FROM main.versions WHERE instr(headers, '{MARK}') > 0;
"""  # noqa: S608 - constants
"""Recreates the notes of archived versions from their headers."""
KEPT = "UPDATE main.packs SET dead = 0"
"""For damaged journals or packs: an unreferenced record may be one that they held, so compaction must not remove it."""
