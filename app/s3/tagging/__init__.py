"""Tags of buckets and objects."""
