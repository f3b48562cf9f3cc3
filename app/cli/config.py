"""`sluice config …`: the settings, checked and shown."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, check_certificate, load_settings
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

MASK = "**********"

config = typer.Typer(name="config", help="The settings.", no_args_is_help=True)


@config.command()
def check(
    data: DataOption = None, config: ConfigOption = None, index: IndexOption = None, as_json: JsonOption = False
) -> None:
    """Check the settings as `serve` does, and print those that are given, without secrets.

    Touches no store and no index.

    Exit codes: 0 `serve` would take them, 1 the certificate cannot be used, 2 a setting is wrong or unknown.
    """
    given = {name for name, value in {"data": data, "config": config, "index": index}.items() if value is not None}
    settings = load_settings(data=data, config=config, index=index)
    check_certificate(settings)
    found = {name: (_shown(settings, name), _origin(name, given)) for name in sorted(settings.model_fields_set)}
    if as_json:
        print(json.dumps({name: {"value": value, "from": origin} for name, (value, origin) in found.items()}))
        return
    for name, (value, origin) in found.items():
        print(f"{name} = {json.dumps(value)}  ({origin})")
    print("the settings are valid" + ("" if found else ", and all are the defaults"))


def _shown(settings: Settings, name: str) -> Any:
    """Return a setting as JSON has it. Secrets are masked, also those that a store's URL or options may have."""
    value = json.loads(settings.model_dump_json(include={name}))[name]
    if name == "stores":
        for store in value.values():
            store["options"] = dict.fromkeys(store["options"], MASK)
            store["url"] = store["url"] and re.sub(r"//[^/]*@", f"//{MASK}@", store["url"])
    return value


def _origin(name: str, options: set[str]) -> str:
    """Return what a setting is given by: an option, a variable, or else the file."""
    from sluice_s3.app.settings.environment import variables_of

    if name in options:
        return f"--{name}"
    field: FieldInfo = Settings.model_fields[name]
    return next((variable for variable in variables_of(name, field) if os.environ.get(variable)), "the file")
