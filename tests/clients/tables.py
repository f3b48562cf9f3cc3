"""One writer of a table, in a process of its own: `delta` or `iceberg`, then where, its number, and how many commits.

    python tests/clients/tables.py delta s3://bucket/table 3 5
    python tests/clients/tables.py iceberg sqlite:////catalog.db 3 5

`delta-rows` and `iceberg-rows` print what the table holds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import pyarrow

TRIES = 200
OPTIONS = {
    "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
    "AWS_ALLOW_HTTP": "true",
    "AWS_CONDITIONAL_PUT": "etag",
}
PROPERTIES = {
    "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
    "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
    "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
    "s3.region": os.environ["AWS_DEFAULT_REGION"],
}
NAME = "races.table"


def row(writer: int, number: int) -> pyarrow.Table:
    """One row that no other commit writes."""
    schema = pyarrow.schema([("writer", pyarrow.int64()), ("number", pyarrow.int64())])
    return pyarrow.Table.from_pylist([{"writer": writer, "number": number}], schema=schema)


def delta(where: str, writer: int, commits: int) -> None:
    """Each append is one commit, which is a PUT of its log entry that must not be there; losers try the next number."""
    from deltalake import CommitProperties, write_deltalake

    for number in range(commits):
        write_deltalake(
            where,
            row(writer, number),
            mode="append",
            storage_options=OPTIONS,
            commit_properties=CommitProperties(max_commit_retries=TRIES),
        )


def delta_rows(where: str) -> list[Any]:
    """Rows, and the version that the table has reached."""
    from deltalake import DeltaTable

    table = DeltaTable(where, storage_options=OPTIONS)
    return [table.version(), table.to_pyarrow_table().to_pylist()]


def _catalog(url: str, warehouse: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("races", uri=url, warehouse=warehouse, **PROPERTIES)


def iceberg(where: str, writer: int, commits: int) -> None:
    """The catalog decides who wins; files and metadata are on S3, and a loser reads the winner's at once."""
    from pyiceberg.exceptions import CommitFailedException

    url, _, warehouse = where.partition("|")
    catalog = _catalog(url, warehouse)
    for number in range(commits):
        for _ in range(TRIES):
            try:
                catalog.load_table(NAME).append(row(writer, number))
                break
            except CommitFailedException:
                time.sleep(0.01)
        else:
            raise RuntimeError("never won")


def iceberg_make(where: str) -> list[Any]:
    """The empty table."""
    url, _, warehouse = where.partition("|")
    catalog = _catalog(url, warehouse)
    catalog.create_namespace("races")
    catalog.create_table(NAME, row(0, 0).schema)
    return []


def iceberg_rows(where: str) -> list[Any]:
    """How many snapshots there are, and rows."""
    url, _, warehouse = where.partition("|")
    table = _catalog(url, warehouse).load_table(NAME)
    return [len(table.snapshots()), table.scan().to_arrow().to_pylist()]


READING = {"delta-rows": delta_rows, "iceberg-make": iceberg_make, "iceberg-rows": iceberg_rows}

if __name__ == "__main__":
    what, place = sys.argv[1:3]
    if what in ("delta", "iceberg"):
        {"delta": delta, "iceberg": iceberg}[what](place, int(sys.argv[3]), int(sys.argv[4]))
    else:
        print(json.dumps(READING[what](place)), flush=True)
    os._exit(0)  # the libraries' threads now and then abort an interpreter that ends as usual ("terminate called …")
