"""Buckets as websites: `configuration` says what one is, `serve` answers its requests."""
