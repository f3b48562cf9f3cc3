"""Append-only files that hold many small bodies as records."""
