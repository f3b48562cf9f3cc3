"""Sluice: an S3 gateway over a directory."""

__version__ = "0.1.0"
