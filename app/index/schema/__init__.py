"""The tables of the index, described for SQLAlchemy."""
