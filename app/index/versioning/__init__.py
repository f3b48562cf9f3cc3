"""Versions of a key: their order, ids and listing."""
