"""Alembic's migrations of the index, imported as a package, independent of the working directory."""
