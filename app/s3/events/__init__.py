"""Notifications of changes: what requests say of them, and which changes are told. See README.md here."""
