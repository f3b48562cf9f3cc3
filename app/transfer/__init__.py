"""Copies of whole buckets between S3 endpoints."""
