"""Lifecycle rules and storage classes, without I/O."""
