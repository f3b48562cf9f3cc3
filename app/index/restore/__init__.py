"""Restores of archived versions."""
