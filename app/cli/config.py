"""`sluice config …`: the settings, checked and shown."""

from __future__ import annotations

import json
import os

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, check_certificate, load_settings
from sluice_s3.app.settings import Settings
from sluice_s3.app.settings.origins import origin_of, shown_value

config = typer.Typer(name="config", help="The settings.", no_args_is_help=True)


@config.command()
def check(
    data: DataOption = None, config: ConfigOption = None, index: IndexOption = None, as_json: JsonOption = False
) -> None:
    """Check the settings as `serve` does, and print those that are given, without secrets.

    Touches no store and no index.

    Exit codes: 0 `serve` would take them, 1 the certificate cannot be used, 2 a setting is wrong or unknown.
    """
    settings = load_settings(data=data, config=config, index=index)
    check_certificate(settings)
    found = {
        name: (shown_value(settings, name), _given_by(settings, name)) for name in sorted(settings.model_fields_set)
    }
    if as_json:
        print(json.dumps({name: {"value": value, "from": origin} for name, (value, origin) in found.items()}))
        return
    for name, (value, origin) in found.items():
        print(f"{name} = {json.dumps(value)}  ({origin})")
    print("the settings are valid" + ("" if found else ", and all are the defaults"))


def _given_by(settings: Settings, name: str) -> str:
    """Return what a setting is given by: an option, a variable, or else the file."""
    origin, given_by = origin_of(settings, name, os.environ)
    return "the file" if origin == "file" else given_by
