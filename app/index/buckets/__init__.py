"""Buckets: their rows, settings and usage."""
