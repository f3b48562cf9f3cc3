"""Buckets in the admin API and in the console. Read README.md first."""
