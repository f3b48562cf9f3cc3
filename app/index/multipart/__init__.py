"""Multipart uploads, and the pieces of completed objects."""
