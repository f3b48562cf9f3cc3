"""Stores that are not mounts: any fsspec file system."""
