"""The command `sluice`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sluice_s3.app import __version__
from sluice_s3.app.cli.audit import audit_command
from sluice_s3.app.cli.backup import backup_command, restore_command
from sluice_s3.app.cli.bench import bench
from sluice_s3.app.cli.buckets import buckets
from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, load_settings
from sluice_s3.app.cli.config import config
from sluice_s3.app.cli.fsck import fsck_command
from sluice_s3.app.cli.iam import iam_command
from sluice_s3.app.cli.import_ import import_command
from sluice_s3.app.cli.index import indexes, migrate_command
from sluice_s3.app.cli.init import init
from sluice_s3.app.cli.keys import keys
from sluice_s3.app.cli.probe import probe_command
from sluice_s3.app.cli.rebuild import rebuild_command
from sluice_s3.app.cli.recover import recover_command
from sluice_s3.app.cli.scrub import scrub_command
from sluice_s3.app.cli.server import server
from sluice_s3.app.cli.serving import begin, start
from sluice_s3.app.cli.share import share_command
from sluice_s3.app.cli.status import status_command
from sluice_s3.app.cli.transfer import pull_command, push_command
from sluice_s3.app.cli.users import users

cli = typer.Typer(
    name="sluice",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # it would take `[...]` in a help text for markup
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@cli.callback(help="An S3 gateway over a directory.")
def take_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options before a command."""


@cli.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address of the S3 listener.")] = None,
    port: Annotated[int | None, typer.Option(help="Port of the S3 listener; 0: any free one.")] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes; default one a core.")] = None,
    admin_host: Annotated[str | None, typer.Option(help="Address of the admin listener.")] = None,
    admin_port: Annotated[int | None, typer.Option(help="Port of the admin listener; -1: none.")] = None,
    tls_cert: Annotated[Path | None, typer.Option(help="PEM certificate chain.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="PEM private key.")] = None,
    wait_index: Annotated[
        float | None, typer.Option(help="Seconds to wait for a Postgres index that does not answer yet.")
    ] = None,
) -> None:
    """Serve S3.

    Settings without an option here come from the environment (prefix SLUICE_, see docs/reference/settings.md).

    Exit codes: 0 stopped by a signal, 1 it cannot start, 2 the settings are wrong, 5 the index did not answer within
    --wait-index.
    """
    begin()
    settings = load_settings(
        host=host,
        port=port,
        data=data,
        config=config,
        index=index,
        workers=workers,
        admin_host=admin_host,
        admin_port=admin_port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        wait_index=wait_index,
    )
    start(settings)


@cli.command()
def version() -> None:
    """Print the version."""
    print(__version__)


cli.add_typer(users, name="user")
cli.add_typer(bench, name="bench")
cli.add_typer(buckets, name="bucket")
cli.add_typer(config, name="config")
cli.add_typer(indexes, name="index")
cli.add_typer(init, name="init")
cli.add_typer(keys, name="key")
cli.command("backup")(backup_command)
cli.command("fsck")(fsck_command)
cli.command("iam")(iam_command)
cli.command("import")(import_command)
cli.command("migrate")(migrate_command)
cli.command("probe")(probe_command)
cli.command("pull")(pull_command)
cli.command("push")(push_command)
cli.command("rebuild")(rebuild_command)
cli.command("recover")(recover_command)
cli.command("restore")(restore_command)
cli.command("scrub")(scrub_command)
cli.command("share")(share_command)
cli.command("audit")(audit_command)
cli.command("status")(status_command)
# what it does not know goes to the arguments, to be refused in one line
cli.command("server", context_settings={"ignore_unknown_options": True})(server)


def main() -> None:
    """Entry point of the command."""
    cli()


if __name__ == "__main__":
    main()
