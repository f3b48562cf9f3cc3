"""Gateways with a store for storage classes beside the one under test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.gateway import Gateway
from tests.support.hook import Hook
from tests.support.places import placed


@contextmanager
def classed(directory: Path, kind: str, hook: Hook, classes: str, day: int) -> Iterator[Gateway]:
    """Buckets on a place of that kind, a store `cold` for the classes and `plain` of plain files; `day` is seconds."""
    with placed(directory, kind) as place:
        env = place.environment(directory / "data")
        stores = {
            "default": place.store or {"path": str(directory / "data")},
            "cold": {"path": str(directory / "cold")},
            "plain": {"path": str(directory / "plain"), "layout": "tree"},
        }
        env |= {
            "SLUICE_STORES": json.dumps(stores),
            "SLUICE_STORAGE_CLASSES": classes,
            "SLUICE_LIFECYCLE_DAY_SECONDS": str(day),
            "SLUICE_DISCARD_GRACE": "0",
            "SLUICE_NOTIFY_TARGETS": json.dumps({"hook": {"url": hook.url}}),
        }
        if postgres.CHOSEN == "sqlite":
            env.setdefault("SLUICE_INDEX", f"sqlite:///{directory}/data/index/sluice.db")
        how: dict[str, Any] = {"env": env, "given": (), "options": ("--admin-port", "0")}
        with Gateway(directory / "data", workers=place.workers or 2, **how) as running:
            yield running
