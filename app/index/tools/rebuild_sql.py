"""SQL of `rebuild` once all blobs are known: pieces, states, headers to restore, archived versions, space to keep.

A rebuilt index is always SQLite.
"""

from __future__ import annotations

from sluice_s3.app.index.restore.state import ARCHIVE_OFFSET, MARK, PREFIX, restore_meta_value

NAME_BLOBS = """
INSERT OR IGNORE INTO scratch.named
    SELECT blob FROM scratch.decided WHERE NOT removed AND blob IN (SELECT old FROM scratch.aliases)
    UNION SELECT blob FROM scratch.pieces WHERE blob IN (SELECT old FROM scratch.aliases);
"""
GONE_BLOBS = """
SELECT named.blob FROM scratch.named AS named LEFT JOIN scratch.blobs AS blobs ON blobs.blob = named.blob
    WHERE named.blob IN (SELECT old FROM scratch.aliases) AND (blobs.blob IS NULL OR blobs.pack != 0)
"""
COPIES = """
WITH RECURSIVE copies(blob) AS (
    SELECT blob FROM scratch.aliases WHERE old = ?
    UNION SELECT aliases.blob FROM scratch.aliases AS aliases JOIN copies ON aliases.old = copies.blob
) SELECT blob FROM copies WHERE blob IN (SELECT blob FROM scratch.blobs)
"""
# an uncommitted recovery header counts only when nothing contradicts it; of several for one key the newest, unless its
# bucket keeps versions
JUDGE_CLAIMS = """
CREATE INDEX scratch.claims_key ON claims (bucket_id, key, drawn, at, blob);
UPDATE scratch.claims AS claims SET reason = CASE
    WHEN EXISTS (SELECT 1 FROM scratch.decided AS decided WHERE decided.bucket_id = claims.bucket_id
        AND decided.key = claims.key AND (decided.seq > claims.drawn OR decided.modified >= claims.at))
        THEN 'what was decided for its key is as new'
    WHEN claims.conditional THEN 'it carried a condition, and what was decided is not known'
    WHEN NOT EXISTS (SELECT 1 FROM main.buckets WHERE buckets.id = claims.bucket_id) THEN 'its bucket is not known'
    WHEN (SELECT versioning FROM main.buckets WHERE buckets.id = claims.bucket_id) != 1
        AND EXISTS (SELECT 1 FROM scratch.claims AS other WHERE other.bucket_id = claims.bucket_id
        AND other.key = claims.key AND NOT other.conditional
        AND (other.drawn, other.at, other.blob) > (claims.drawn, claims.at, claims.blob))
        THEN 'a newer PUT of its key is restored'
    ELSE '' END;
"""
FORGET_DECIDED_CLAIMS = """
CREATE INDEX scratch.decided_blob ON decided (blob, removed);
DELETE FROM scratch.claims WHERE EXISTS (
    SELECT 1 FROM scratch.decided AS decided WHERE decided.blob = claims.blob AND NOT decided.removed
) OR blob IN (SELECT blob FROM scratch.voids) OR writer IN (SELECT writer FROM scratch.ended);
"""
_LACKING = "blobs.blob IS NULL OR blobs.size < pieces.blob_offset + pieces.size"
# pieces beyond the committed size come from an uncommitted append. Pieces of an upload make no object when some are
# missing or do not add up to its size. Pieces in an archive are of use only if all of them exist
SUMMED = f"""
INSERT INTO scratch.wanted SELECT CAST(substr(body, 8) AS INTEGER), max(size) FROM scratch.decided
    WHERE body LIKE 'pieces:%' AND NOT removed GROUP BY body;
DELETE FROM scratch.pieces
    WHERE size > 0 AND start < {ARCHIVE_OFFSET}
    AND start >= (SELECT wanted.size FROM scratch.wanted AS wanted WHERE wanted.upload = pieces.upload);
DELETE FROM scratch.pieces WHERE start >= {ARCHIVE_OFFSET} AND upload IN (
    SELECT pieces.upload FROM scratch.pieces AS pieces LEFT JOIN scratch.blobs AS blobs ON blobs.blob = pieces.blob
    WHERE pieces.start >= {ARCHIVE_OFFSET} AND pieces.size > 0 AND ({_LACKING}));
INSERT INTO scratch.summed
SELECT pieces.upload AS upload, sum(pieces.size) AS size,
    sum(pieces.size > 0 AND ({_LACKING})) AS missing
FROM scratch.pieces AS pieces LEFT JOIN scratch.blobs AS blobs ON blobs.blob = pieces.blob
WHERE pieces.start < {ARCHIVE_OFFSET} GROUP BY pieces.upload;
"""  # noqa: S608 - constants
# a change of the newest version of a key is not journaled; it follows from the versions that exist
STATES = """
INSERT INTO scratch.several SELECT bucket_id, key FROM scratch.decided WHERE NOT removed
    GROUP BY bucket_id, key HAVING count(*) > 1 OR min(state) != 1 OR max(state) != 1;
UPDATE scratch.decided SET state = 3 * (etag = '')
    WHERE NOT removed AND (bucket_id, key) IN (SELECT bucket_id, key FROM scratch.several);
UPDATE scratch.decided SET state = 1 + (etag = '') WHERE (bucket_id, key, version_id) IN (
    SELECT bucket_id, key, version_id FROM (
        SELECT decided.bucket_id, decided.key, decided.version_id, max(decided.modified)
        FROM scratch.several AS several
        JOIN scratch.decided AS decided ON decided.bucket_id = several.bucket_id AND decided.key = several.key
        JOIN scratch.judged AS judged ON judged.seq = decided.seq AND judged.reason = ''
        WHERE NOT decided.removed GROUP BY decided.bucket_id, decided.key));
"""

RESTORE_NOTES = f"""
INSERT OR REPLACE INTO main.meta
    SELECT '{PREFIX}' || bucket_id || ':' || version_id || ':' || key, '{restore_meta_value(0)}'
    FROM main.versions WHERE instr(headers, '{MARK}') > 0;
"""  # noqa: S608 - constants
"""Recreates the notes of archived versions from their headers."""
KEEP_RECORDS = "UPDATE main.packs SET dead = 0"
"""For damaged journals or packs: an unreferenced record may be one that they held, so compaction must not remove it."""
