"""Clients that scenarios measure with."""
