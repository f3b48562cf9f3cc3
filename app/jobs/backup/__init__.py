"""Backups of a whole gateway, and their restore."""
