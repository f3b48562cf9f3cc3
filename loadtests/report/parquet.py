"""All rows of a run as one Parquet file, where pyarrow is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.request_log import COLUMNS, read_rows

PARQUET = "rows.parquet"
BATCH_ROWS = 50_000
FLOATS = ("start", "late_s", "ttfb_s", "total_s")
WHOLE = ("repeat", "size", "users", "bytes", "status", "retries")


def write_parquet(directory: Path, meta: Mapping[str, Any]) -> bool:
    """Write the rows of all cells into `rows.parquet`. Return whether it is there.

    Without pyarrow, or without a row, an older file is removed, since it would be of other cells. Raises OSError.
    """
    to = directory / PARQUET
    files = [directory / cell["file"] for cell in meta["cells"] if cell["file"]]
    if find_spec("pyarrow") is None or not _write(to, _batches(files)):
        to.unlink(missing_ok=True)
        return False
    return True


def _write(to: Path, batches: Iterable[list[dict[str, Any]]]) -> bool:
    import pyarrow
    from pyarrow import parquet

    kinds = {**dict.fromkeys(FLOATS, pyarrow.float64()), **dict.fromkeys(WHOLE, pyarrow.int64())}
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in COLUMNS])
    making = to.with_name(f"{to.name}.making")
    written = False
    with parquet.ParquetWriter(making, schema, compression="zstd") as file:
        for batch in batches:
            file.write_table(pyarrow.Table.from_pylist(batch, schema=schema))
            written = True
    making.replace(to)
    return written


def _batches(files: Iterable[Path]) -> Iterator[list[dict[str, Any]]]:
    for file in files:
        rows = _readable(file)
        while batch := list(islice(rows, BATCH_ROWS)):
            yield batch


def _readable(file: Path) -> Iterator[dict[str, Any]]:
    """Yield rows up to where a file is cut off; the report says so."""
    try:
        yield from read_rows(file)
    except (OSError, EOFError, ValueError, TypeError, KeyError):
        return
