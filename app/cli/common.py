"""The beginning and the end of all commands.

Every command imports all of their modules: imports that only one command needs stand in its function.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from sluice_s3.app.settings import ConfigError, Settings
from sluice_s3.app.settings.environment import find_unknown

if TYPE_CHECKING:
    from rich.progress import Progress

DataOption = Annotated[Path | None, typer.Option("--data", help="Directory of the backing store [env SLUICE_DATA].")]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="TOML file of settings [env SLUICE_CONFIG].")]
IndexOption = Annotated[
    str | None, typer.Option("--index", help="URL of the index, e.g. sqlite:////var/lib/sluice/index.db.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
PROGRESS_SECONDS = 1.0
"""Seconds between two lines of progress."""


def load_settings(**options: Any) -> Settings:
    """Return the settings from environment and options; exit with 2 when one is wrong or unknown."""
    if (fault := find_unknown(os.environ)) is not None:
        fail(fault, 2)
    given = {name: value for name, value in options.items() if value is not None}
    try:
        settings = Settings(**given)
        settings.note_options(given)
    except ConfigError as error:
        fail(str(error), 2)
    except SettingsError as error:  # of a variable that should be JSON; its text names the setting and no value
        fail(f"{error}: {error.__cause__}" if error.__cause__ else str(error), 2)
    except ValidationError as error:
        fail_invalid(error, 2)
    if settings.index_url is not None:
        require_postgres()
    if settings.traces:
        _require("opentelemetry.exporter.otlp.proto.http", "traces", "otel")
    return settings


def require_postgres() -> None:
    """Exit with 2 when the package that talks to Postgres is not installed."""
    _require("asyncpg", "an index in Postgres", "postgres")


def _require(module: str, feature: str, extra: str) -> None:
    from importlib.util import find_spec

    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # a package above it is not there either
        found = None
    if found is None:
        needs = "needs" if feature.startswith("an ") else "need"
        fail(f"{feature} {needs} {module}, which is not installed: pip install 'sluice-s3[{extra}]'", 2)


def check_certificate(settings: Settings) -> None:
    """Exit with 1 when a certificate or key is unusable, and name the files, which a worker's error does not."""
    if (settings.tls_cert is None) != (settings.tls_key is None):
        fail("give both --tls-cert and --tls-key, or neither")
    if settings.tls_cert is None:
        return
    import ssl

    from sluice_s3.app.private_files import check_given

    try:
        if settings.tls_key is not None:
            with settings.tls_key.open("rb") as key:
                check_given(key.fileno(), settings.tls_key)
        # without an answer the library would read the key's passphrase from the terminal
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, lambda: "")
    except OSError as error:
        why = error.strerror or str(error)
        fail(f"the certificate {settings.tls_cert} with the key {settings.tls_key} cannot be used: {why}")


def progress_bar(*, disable: bool = False) -> Progress:
    """Create a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=disable)


def progress_lines() -> Callable[[dict[str, Any]], None]:
    """Return a function that prints what it is given as a line of JSON, at most once in PROGRESS_SECONDS."""
    due = float("-inf")

    def print_line(progress: dict[str, Any]) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + PROGRESS_SECONDS
            print(json.dumps(progress), flush=True)

    return print_line


def fail(message: str, code: int = 1) -> NoReturn:
    """Print the reason on standard error and exit."""
    print(f"sluice: {message}", file=sys.stderr)
    raise typer.Exit(code)


def fail_invalid(error: ValidationError, code: int = 1) -> NoReturn:
    """Print invalid settings on standard error, one a line and without values, and exit."""
    for fault in error.errors(include_url=False, include_input=False):
        field_path = ".".join(map(str, fault["loc"]))
        message = fault["msg"].removeprefix("Value error, ")
        print(f"sluice: {field_path}: {message}" if field_path else f"sluice: {message}", file=sys.stderr)
    raise typer.Exit(code) from None
