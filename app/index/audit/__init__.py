"""Audit events: administrative changes, and who made them."""
