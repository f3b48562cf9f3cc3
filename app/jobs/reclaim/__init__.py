"""Jobs that free space: compaction, garbage collection and the orphan sweep."""
