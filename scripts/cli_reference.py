"""Write the page of commands from typer, or with --check compare it."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.main import get_command

from scripts.generated_pages import put_table
from sluice_s3.app.cli.main import cli


def page() -> str:
    """Render each command: its text, its usage, and a table of its arguments and options."""
    lines: list[str] = []
    _render(get_command(cli), "sluice", None, lines)
    return "\n".join(lines).rstrip("\n") + "\n"


def _render(command: Any, name: str, parent: Any, lines: list[str]) -> None:
    with typer.Context(command, info_name=name.rpartition(" ")[2], parent=parent) as context:
        subcommands = getattr(command, "commands", {})
        if parent is not None:
            lines += [f"{'##' if name.count(' ') == 1 else '###'} {name}", ""]
            if not subcommands or command.params:
                lines += [f"    {context.command_path} {' '.join(command.collect_usage_pieces(context))}", ""]
            for paragraph in (command.help or "").split("\n\n"):
                lines += [" ".join(paragraph.split()), ""]
            lines += _options(command, context)
        for one in sorted(subcommands):
            _render(subcommands[one], f"{name} {one}", context, lines)


def _options(command: Any, context: Any) -> list[str]:
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[0] != "--help":
            left, right = (" ".join(text.split()).replace("|", "\\|") for text in record)
            rows.append(f"| `{left}` | {right} |")
    return ["| | |", "|---|---|", *rows, ""] if rows else []


def main() -> int:
    """Write the page. Returns exit code 1 when --check finds an old one."""
    return put_table(
        "cli", "commands", "scripts/cli_reference.py", page(), check="--check" in sys.argv, remedy="make format"
    )


if __name__ == "__main__":
    sys.exit(main())
