"""Access control lists of buckets and objects."""
