"""Write the table of metrics from the code, or with --check compare it.

The counters render their own families. Others are found where the code declares them: as name, kind and description
of one call or tuple, or in a module's `HELP` of gauges. Labels are those of the f-strings that render samples.
"""

from __future__ import annotations

import ast
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from scripts.generated_pages import put_table
from sluice_s3.app.admin import notifications
from sluice_s3.app.server.shared_memory.counters import Counters

APP = Path(__file__).parent.parent / "app"
FAMILY = re.compile(r"^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$", re.M)
KINDS = ("counter", "gauge", "histogram")
LABEL = re.compile(r'(\w+)="')
MORE_LABELS = {"sluice_pack_bytes": ["state"]}
"""Labels that are rendered apart from the others."""

Families = dict[str, tuple[str, list[str], str]]
"""Kind, labels and description of each metric."""


def of_counters() -> Families:
    """Return the families that the counters render after one request."""
    with tempfile.TemporaryDirectory() as directory:
        counters = Counters(Path(directory) / "counters", 1, create=True)
        counters.count_request("GetObject", 200, {"read": 0.1}, 0.1, 1, 1, "NoSuchKey")
        text = counters.render().decode()
    found: Families = {}
    for name, description, kind in FAMILY.findall(text):
        sample = re.search(rf"^{name}(?:_bucket)?{{(.*?)}} ", text, re.M)
        labels = [label for label in LABEL.findall(sample[1] if sample else "") if label != "le"]
        found[name] = (kind, labels, description)
    return found


def of_module(tree: ast.Module) -> Families:
    """Return the families that a module declares."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    own: dict[str, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(_constant_text(part, constants) for part in node.values)
            name, opened, rest = text.partition("{")
            if opened:
                own.setdefault(name, []).extend(label for label in LABEL.findall(rest) if label not in own[name])
    return {
        name: (kind, [*own.get(name, own.get("", [])), *MORE_LABELS.get(name, [])], text)
        for name, kind, text in _declared(tree)
    }


def _constant_text(part: ast.expr, constants: Mapping[str, object]) -> str:
    """Return a part of an f-string, where it is constant; an imported constant stands as its name."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    named = getattr(part, "value", None)
    name = named.id if isinstance(named, ast.Name) else ""
    return str(constants.get(name, name if name.isupper() else ""))


def _declared(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    for node in ast.walk(tree):
        values = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        texts = [one.value if isinstance(one, ast.Constant) else None for one in values[:3]]
        if len(texts) == 3 and texts[1] in KINDS:
            yield str(texts[0]), str(texts[1]), str(texts[2])
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "HELP":
            for name, text in ast.literal_eval(node.value).items():
                yield name, "gauge", text


def families() -> Families:
    """Return all metrics, those of the counters first."""
    found = of_counters()
    for module in sorted(APP.rglob("*.py")):
        text = module.read_text()
        if "\nHELP = " in text or any(f'"{kind}"' in text for kind in KINDS):
            for name, family in of_module(ast.parse(text)).items():
                found.setdefault(name, family)
    found[notifications.GIVEN_UP] = ("counter", ["target", "reason"], notifications.GIVEN_UP_HELP)
    return found


def table() -> str:
    """Render one line for each metric."""
    rows = [
        f"| `{name}` | {kind} | {', '.join(f'`{label}`' for label in labels)} | {text} |"
        for name, (kind, labels, text) in families().items()
    ]
    return "\n".join(["| metric | kind | labels | |", "|---|---|---|---|", *rows]) + "\n"


def main() -> int:
    """Write the table. Returns exit code 1 when --check finds an old one."""
    return put_table(
        "metrics", "metrics", "scripts/metrics_table.py", table(), check="--check" in sys.argv, remedy="make format"
    )


if __name__ == "__main__":
    sys.exit(main())
