"""Write the table of metrics from the code, or with --check compare it.

The counters render their own families; those of stores and of notification targets are in `HELP` of their modules.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from scripts.generated_pages import put_table
from sluice_s3.app.admin import metrics, notifications
from sluice_s3.app.server.shared_memory.counters import Counters

FAMILY = re.compile(r"^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$", re.M)


def families() -> dict[str, tuple[str, str, str]]:
    """Return kind, labels and description of each metric."""
    with tempfile.TemporaryDirectory() as directory:
        counters = Counters(Path(directory) / "counters", 1, create=True)
        counters.count_request("GetObject", 200, {"read": 0.1}, 0.1, 1, 1, "NoSuchKey")
        text = counters.render().decode()
    found = {}
    for name, description, kind in FAMILY.findall(text):
        sample = re.search(rf"^{name}(?:_bucket)?{{(.*?)}} ", text, re.M)
        labels = re.findall(r'(\w+)="', sample[1]) if sample else []
        found[name] = (kind, ", ".join(f"`{label}`" for label in labels if label != "le"), description)
    for name, description in metrics.HELP.items():
        found[name] = ("gauge", "`store`" + (", `state`" if name == "sluice_pack_bytes" else ""), description)
    for name, description in notifications.HELP.items():
        found[name] = ("gauge", "`target`", description)
    found[notifications.GIVEN_UP] = ("counter", "`target`, `reason`", notifications.GIVEN_UP_HELP)
    return found


def table() -> str:
    """Render one line for each metric."""
    rows = [f"| `{name}` | {kind} | {labels} | {text} |" for name, (kind, labels, text) in families().items()]
    return "\n".join(["| metric | kind | labels | |", "|---|---|---|---|", *rows]) + "\n"


def main() -> int:
    """Write the table. Returns exit code 1 when --check finds an old one."""
    return put_table(
        "metrics", "metrics", "scripts/metrics_table.py", table(), check="--check" in sys.argv, remedy="make format"
    )


if __name__ == "__main__":
    sys.exit(main())
