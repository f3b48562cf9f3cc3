"""What an index that is rebuilt, which is always SQLite's, gets beside its rows: notes, and which space is kept."""

from __future__ import annotations

from sluice_s3.app.index.restore_state import MARK, PREFIX, restore_meta_value

REMEMBERED = f"""
INSERT OR REPLACE INTO main.meta
    SELECT '{PREFIX}' || bucket_id || ':' || version_id || ':' || key, '{restore_meta_value(0)}'
    FROM main.versions WHERE instr(headers, '{MARK}') > 0;
"""  # noqa: S608 - constants
"""The notes of archived versions, made anew from their headers."""
KEPT = "UPDATE main.packs SET dead = 0"
"""Where journals or packs are damaged, what no row holds may be what they told of: compaction must not take it away."""
