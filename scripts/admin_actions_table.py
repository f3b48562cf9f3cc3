"""Write the table of the actions of the admin API, or with --check compare it."""

from __future__ import annotations

import sys

from scripts.generated_pages import put_table
from sluice_s3.app.access.admin_actions import DESCRIPTIONS


def table() -> str:
    """Render a line for each action, by name."""
    lines = [f"| `{name}` | {DESCRIPTIONS[name]} |" for name in sorted(DESCRIPTIONS)]
    return "\n".join(["| action | what it allows |", "|---|---|", *lines]) + "\n"


def main() -> int:
    """Write the table. Returns exit code 1 when --check finds an old one."""
    return put_table(
        "admin-actions",
        "admin-actions",
        "scripts/admin_actions_table.py",
        table(),
        check="--check" in sys.argv,
        remedy="make format",
    )


if __name__ == "__main__":
    sys.exit(main())
