"""Archived objects and their restore."""
