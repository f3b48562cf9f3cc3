"""Alembic's migrations of the index, found as a package and never by the working directory."""
