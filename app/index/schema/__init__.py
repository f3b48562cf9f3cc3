"""The tables of the index, as SQLAlchemy describes them."""
