"""Checks of stores against their limits, checksums and the index."""
