"""What `sluice serve` and `sluice server` share: the start of a gateway with its settings."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from typing import NoReturn

import typer

from sluice_s3.app.cli.common import check_certificate, fail
from sluice_s3.app.interpreter import describe_interpreter
from sluice_s3.app.settings import Settings
from sluice_s3.app.settings.environment import find_ignored

WELL_KNOWN = (
    "WARNING: the keys of this gateway are well-known ones, so that everybody who reaches it may do everything: "
    "set MINIO_ROOT_USER and MINIO_ROOT_PASSWORD"
)


def begin(known: Iterable[str] = (), *, level: int = logging.INFO) -> None:
    """Set up log and permissions of new files, and name the variables of MinIO that change nothing.

    `known` are those that the command itself reads.
    """
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(max(level, logging.WARNING))
    os.umask(0o077)  # parent directories must also be private
    if ignored := find_ignored(os.environ, known):
        _note(f"these variables of MinIO change nothing here: {', '.join(ignored)}")


def start(settings: Settings, *, allow_well_known: bool = False) -> NoReturn:
    """Serve until a signal, then exit; with the reason when it cannot begin: code 1, or 5 for a silent index."""
    from sluice_s3.app.access.root_credentials import FILE_NAME
    from sluice_s3.app.server.processes.launcher import run
    from sluice_s3.app.startup import CannotStart, IndexSilent, prepare

    check_certificate(settings)

    def before_workers(settings: Settings) -> None:
        if advice := describe_interpreter().advice:
            _note(advice)
        file = settings.home / FILE_NAME
        had_keys = file.exists()
        credentials = prepare(settings, allow_well_known=allow_well_known)
        if credentials.well_known:
            _note(WELL_KNOWN)
        if had_keys or not credentials.generated:
            return
        if sys.stdout.isatty():
            print(f"access key: {credentials.access_key}\nsecret key: {credentials.secret_key}", flush=True)
        else:
            print(f"sluice: the generated keys are in {file}", flush=True)

    try:
        code = run(settings, before_workers=before_workers)
    except IndexSilent as error:
        fail(str(error), 5)
    except CannotStart as error:
        fail(str(error))
    raise typer.Exit(code)


def _note(text: str) -> None:
    print(f"sluice: {text}", file=sys.stderr, flush=True)
