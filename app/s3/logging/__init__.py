"""Server access logging of buckets."""
