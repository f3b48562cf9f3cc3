"""Moves of blobs between stores: bucket moves, transitions and restores."""
