"""Generated tables of the pages in docs/reference, each between two marks."""

from __future__ import annotations

import sys
from pathlib import Path

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


def put_table(page: str, name: str, script: str, table: str, *, check: bool, remedy: str) -> int:
    """Put a table into a page, or with `check` compare it. Returns the exit code."""
    path = REFERENCE / f"{page}.md"
    begin, end = f"<!-- {name}: made by {script} -->\n", f"<!-- end of {name} -->\n"
    text = path.read_text()
    head, _, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not closed:
        print(f"{path} has no place for the table of {name}", file=sys.stderr)
        return 1
    fresh = head + begin + table + end + tail
    if check and fresh != text:
        print(f"the table of {name} in docs/reference/{page}.md is old: run `{remedy}`", file=sys.stderr)
        return 1
    if not check:
        path.write_text(fresh)
    return 0
