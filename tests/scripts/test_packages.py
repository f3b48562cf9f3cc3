"""Every package of the checkout is in the distribution: they are named one by one."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_package_is_named() -> None:
    named = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    tops = {name.partition(".")[0] for name in named}
    found = {path.parent.relative_to(ROOT) for top in tops for path in (ROOT / top).rglob("*.py")}
    assert set(named) == {".".join(path.parts) for path in found}
