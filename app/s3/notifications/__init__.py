"""Notifications of changes: configurations and event contexts. See README.md here."""
