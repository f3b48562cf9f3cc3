"""Alembic's environment.

The `migrate` module of the engine supplies the connection; nothing here opens one.
"""

from __future__ import annotations

from alembic import context

from sluice_s3.app.index.schema.tables import metadata, set_postgres_options

with_connection = context.config.attributes.get("connection")
if with_connection is None:
    raise RuntimeError("migrations are run by sluice_s3.app.index.sqlite.migrate")

if with_connection.dialect.name == "postgresql":
    set_postgres_options()
context.configure(
    connection=with_connection,
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
