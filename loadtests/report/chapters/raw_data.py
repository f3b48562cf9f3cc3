"""Links to what the report was made of."""

from __future__ import annotations

from urllib.parse import quote

from sluice_s3.loadtests.report.document import Block, Chapter, Link, Links
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.parquet import PARQUET


def chapter(model: Model) -> Chapter:
    """Render links to the rows, and to the other files of the run."""
    rows = [
        Link(
            f"{cell['target']}, {cell['scenario']}, repeat {cell['repeat']}",
            quote(str(cell["file"]).lstrip("/")),
            f"{cell['rows']:,} rows",
        )
        for cell in model.meta["cells"]
        if cell["file"]
    ]
    others = [Link(name, name, words) for name, words in FILES.items()]
    if model.parquet:
        others.insert(0, Link(PARQUET, PARQUET, "all rows, for DuckDB, pandas, Polars"))
    blocks: list[Block] = [Links(others, "Files of this run"), Links(rows, "Rows: one line a request (CSV, gzip)")]
    about = "Files beside this page; the console has them all under “Raw data”. loadtests/README.md names the columns."
    return Chapter("data", "Raw data", about, blocks)


FILES = {
    "report.json": "all figures of this page",
    "report.md": "this page as text",
    "meta.json": "plan, machine, targets, cells",
    "resources.csv": "CPU, memory and I/O by the second",
}
"""Files that are in every run, with what they hold."""
