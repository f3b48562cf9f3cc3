"""Expiration by lifecycle rules."""
