"""Server access logs of buckets: README.md here."""
