"""The README's generated tables, each between two marks."""

from __future__ import annotations

import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def put_table(name: str, script: str, table: str, *, check: bool, remedy: str) -> int:
    """Put a table into the README, or with `check` compare it. Returns the exit code."""
    begin, end = f"<!-- {name}: made by {script} -->\n", f"<!-- end of {name} -->\n"
    text = README.read_text()
    head, _, rest = text.partition(begin)
    _, closed, tail = rest.partition(end)
    if not closed:
        print(f"{README.name} has no place for the table of {name}", file=sys.stderr)
        return 1
    fresh = head + begin + table + end + tail
    if check and fresh != text:
        print(f"the README's table of {name} is old: run `{remedy}`", file=sys.stderr)
        return 1
    if not check:
        README.write_text(fresh)
    return 0
