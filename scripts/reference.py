"""Write all generated tables of docs/reference, or with --check compare them (`make format`, `make lint`)."""

from __future__ import annotations

import sys

from scripts import (
    admin_actions_table,
    cli_reference,
    errors_table,
    metrics_table,
    operations_table,
    settings_table,
)

MAINS = (
    settings_table.main,
    cli_reference.main,
    operations_table.main,
    errors_table.main,
    metrics_table.main,
    admin_actions_table.main,
)


def main() -> int:
    """Run each script with the options of this one. Returns exit code 1 when one of them fails."""
    return max([main_of_table() for main_of_table in MAINS])


if __name__ == "__main__":
    sys.exit(main())
