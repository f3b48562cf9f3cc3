"""Settings of a server for tests, as the TOML file that `sluice serve --config` takes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def default_settings(directory: Path, access_key: str, secret_key: str) -> dict[str, Any]:
    """Return settings for a server that starts fast, syncs nothing, and can be set to fail."""
    return {
        "host": "127.0.0.1",
        "port": 0,
        "workers": 1,
        "admin_port": -1,
        "durability": "relaxed",
        "region": "us-east-1",
        "root_access_key": access_key,
        "root_secret_key": secret_key,
        "stores": {"default": {"driver": "faulty", "path": directory / "store"}},
        "index": f"sqlite:///{directory}/index/sluice.db",
    }


def write_settings(path: Path, settings: Mapping[str, Any]) -> None:
    """Write a settings file that only its owner can read. Raises TypeError, OSError."""
    text = "".join(f"{name} = {toml(value)}\n" for name, value in settings.items())
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)


def toml(value: Any) -> str:
    """Return a value as TOML writes it. Raises TypeError."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str | os.PathLike):
        return json.dumps(os.fspath(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml(str(name))} = {toml(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    raise TypeError(f"a setting cannot be {value!r}")
