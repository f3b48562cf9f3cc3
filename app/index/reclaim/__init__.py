"""References to blobs, the discard queue and compaction."""
