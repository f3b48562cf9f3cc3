"""Bytes on a mount: knows nothing of S3 or SQL."""
