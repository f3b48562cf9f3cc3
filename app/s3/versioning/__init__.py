"""Bucket versioning."""
