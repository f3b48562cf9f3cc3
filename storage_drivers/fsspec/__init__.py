"""Stores that are not mounts: any fsspec filesystem."""
