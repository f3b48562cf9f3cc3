"""A gateway whose default store is at a URL that fsspec reaches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.gateway import Gateway


def over_url(directory: Path, url: str, options: dict[str, Any] | None = None, **env: str) -> Gateway:
    """Not started. What is in memory belongs to one worker, anything else to two."""
    store = {"driver": "fsspec", "url": url, "durability": "relaxed", "io_threads": 8, "options": options or {}}
    settings = {"SLUICE_STORES": json.dumps({"default": store}), "SLUICE_INDEX": f"sqlite:///{directory}/index.db"}
    workers = 1 if url.startswith("memory:") else 2
    return Gateway(directory / "gateway", workers=workers, given=(), env={**settings, **env})
