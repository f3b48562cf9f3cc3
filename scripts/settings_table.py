"""Write docs/reference/settings.md's table from the model, or with --check compare it."""

from __future__ import annotations

import sys
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scripts.generated_pages import put_table
from sluice_s3.app.settings import Settings


def default(field: FieldInfo) -> str:
    """Render a default as in the environment; empty if the description explains it."""
    value: Any = field.default
    if value is PydanticUndefined or value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def table() -> str:
    """Render one line for each setting."""
    rows = ["| variable | default | |", "|---|---|---|"]
    own = Settings.__annotations__
    for name, field in sorted(Settings.model_fields.items(), key=lambda found: found[0] not in own):  # parts come last
        text = (field.description or "").replace("|", "\\|")
        rows.append(f"| `SLUICE_{name.upper()}` | {default(field)} | {text} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    """Write the table. Returns exit code 1 when --check finds an old table."""
    check = "--check" in sys.argv
    return put_table("settings", "settings", "scripts/settings_table.py", table(), check=check, remedy="make format")


if __name__ == "__main__":
    sys.exit(main())
