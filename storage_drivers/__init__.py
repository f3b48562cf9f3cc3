"""Backing stores: bytes on a mount, without knowledge of S3 or SQL."""
