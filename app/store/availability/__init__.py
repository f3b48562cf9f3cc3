"""Availability: stores that hang or fail are taken out of service."""
