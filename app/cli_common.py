"""What all commands begin and end with."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import typer
from pydantic import ValidationError

from app.settings import Settings


def load_settings(**options: Any) -> Settings:
    """Settings from the environment with the options that were given over them; exits with 2 when one is wrong."""
    try:
        return Settings(**{name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_input=False):
            print(f"sluice: {'.'.join(map(str, fault['loc']))}: {fault['msg']}", file=sys.stderr)
        raise typer.Exit(2) from None


def fail(message: str, code: int = 1) -> NoReturn:
    """Say why on standard error and exit."""
    print(f"sluice: {message}", file=sys.stderr)
    raise typer.Exit(code)
