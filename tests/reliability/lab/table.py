"""What was found: a table of faults and set-ups, and the same as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.reliability.lab.ledger import Finding

NONE = "-"
"""The fault cannot be brought to the set-up."""
TITLE = "acknowledged lost / wrong / ghost · no change taken for s (after the fault for s) · seeds"
END = "end"
"""In place of a fault: everything is looked at once more, after a restart too."""


@dataclass
class Row:
    """What one fault did to one set-up under one seed."""

    seed: int
    setup: str
    fault: str
    size: str = ""
    """The size of the run, where it is not the usual one."""
    operations: int = 0
    """That were answered."""
    seconds: float = 0.0
    unavailable: float = 0.0
    """The longest time without an acknowledged change, from the strike on, in seconds."""
    back: float = 0.0
    """From the end of the fault until the first acknowledged change, in seconds."""
    findings: list[Finding] = field(default_factory=list)
    log: str = ""
    """What the gateways logged meanwhile, where something was found."""

    def count(self, kind: str) -> int:
        """How many findings there are of a kind."""
        return sum(one.kind == kind for one in self.findings)

    def replay(self) -> str:
        """The command that does the same again; the end of a trial belongs to all of its faults."""
        words = [f"make lab SEED={self.seed} SETUP={self.setup}"]
        words += [f"FAULT={self.fault}"] if self.fault != END else []
        words += [f"SIZE={self.size}"] if self.size else []
        return " ".join(words)


def print_table(rows: Sequence[Row], setups: Sequence[str], console: Console) -> None:
    """Print `lost / wrong / ghost, unavailable (back)` for each fault and set-up, the worst of all seeds."""
    table = Table(
        "fault", *setups, title="acknowledged lost / wrong / ghost · unavailable for s (back after s) · seeds"
    )
    cells: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        cells[row.fault, row.setup].append(row)
    for fault in sorted({row.fault for row in rows}):
        table.add_row(fault, *(_cell(cells.get((fault, setup), [])) for setup in setups))
    console.print(table)


def _cell(rows: Sequence[Row]) -> str:
    if not rows:
        return NONE
    counts = "/".join(str(sum(row.count(kind) for row in rows)) for kind in ("lost", "wrong", "ghost"))
    return f"{counts} · {max(row.unavailable for row in rows):.1f} ({max(row.back for row in rows):.1f}) · {len(rows)}"


def write_json(rows: Sequence[Row], path: Path) -> None:
    """Write every row with its findings and the command that replays it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [
        {**asdict(row), "findings": [one._asdict() for one in row.findings], "replay": row.replay()} for row in rows
    ]
    path.write_text(json.dumps(found, indent=1) + "\n")
