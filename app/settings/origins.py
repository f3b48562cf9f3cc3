"""The settings as people may see them: each with its value, without secrets, and with what it was given by."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from sluice_s3.app.settings.environment import PREFIX, variables_of
from sluice_s3.app.settings.settings import Settings

MASK = "**********"
Origin = Literal["default", "option", "environment", "minio", "file", "command"]
"""What gives a setting. `command`: `sluice server` has other defaults, as MinIO."""
_MASKED = frozenset({"master_key_command"})
"""Settings without a secret's type that may hold one."""


class ShownSetting(NamedTuple):
    """A setting."""

    name: str
    value: Any
    default: Any
    origin: Origin
    given_by: str
    """The option, variable or file; empty for a default."""
    description: str


def show_settings(settings: Settings, environment: Mapping[str, str]) -> list[ShownSetting]:
    """Return all settings, by name."""
    return [_show(settings, name, environment) for name in sorted(Settings.model_fields)]


def _show(settings: Settings, name: str, environment: Mapping[str, str]) -> ShownSetting:
    field = Settings.model_fields[name]
    origin, given_by = origin_of(settings, name, environment)
    default = None if field.default_factory is not None else field.get_default()
    shown = default if default is None or isinstance(default, str | int | float | bool | dict) else str(default)
    return ShownSetting(name, shown_value(settings, name), shown, origin, given_by, field.description or "")


def origin_of(settings: Settings, name: str, environment: Mapping[str, str]) -> tuple[Origin, str]:
    """Return what a setting is given by."""
    if name in settings.options:
        return "option", f"--{name.replace('_', '-')}"
    if name not in settings.model_fields_set:
        return "default", ""
    variables = variables_of(name, Settings.model_fields[name])
    variable = next((one for one in variables if environment.get(one)), None)
    if variable is not None:
        return ("environment" if variable.startswith(PREFIX) else "minio"), variable
    if settings.config is not None:
        return "file", str(settings.config)
    return "command", "sluice server"


def shown_value(settings: Settings, name: str) -> Any:
    """Return a setting as JSON has it. Secrets are masked, also those that a store's URL or options may have."""
    value = json.loads(settings.model_dump_json(include={name}))[name]
    if name in _MASKED:
        return value and MASK
    if name == "stores":
        for store in value.values():
            store["options"] = dict.fromkeys(store["options"], MASK)
            store["url"] = store["url"] and _without_secrets(store["url"])
    return value


def _without_secrets(url: str) -> str:
    return re.sub(r"\?.*", f"?{MASK}", re.sub(r"//[^/]*@", f"//{MASK}@", url))
