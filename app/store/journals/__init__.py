"""Journals of a store: their records, and waiting until they are written."""
