"""Lifecycle rules of buckets."""
