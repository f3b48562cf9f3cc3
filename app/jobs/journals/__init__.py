"""Journals of a store: writing, comparing, recovering and rebuilding."""
