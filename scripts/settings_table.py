"""Write the README's table of settings from the model, or with --check say whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from app.settings import Settings

README = Path(__file__).parent.parent / "README.md"
BEGIN = "<!-- settings: made by scripts/settings_table.py -->\n"
END = "<!-- end of settings -->\n"


def default(field: FieldInfo) -> str:
    """A default as one would write it in the environment; empty where the description tells."""
    value: Any = field.default
    if value is PydanticUndefined or value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def table() -> str:
    """One line a setting."""
    rows = ["| variable | default | |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        text = (field.description or "").replace("|", "\\|")
        rows.append(f"| `SLUICE_{name.upper()}` | {default(field)} | {text} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Exit code 1 when --check finds an old table."""
    text = README.read_text()
    head, _, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        print(f"{README.name} has no place for the table of settings", file=sys.stderr)
        return 1
    fresh = head + BEGIN + table() + END + tail
    if "--check" in sys.argv:
        if fresh != text:
            print("the README's table of settings is old: run `make format`", file=sys.stderr)
            return 1
        return 0
    README.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
