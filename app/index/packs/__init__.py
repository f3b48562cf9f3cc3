"""Packs: their writers and their dead bytes."""
