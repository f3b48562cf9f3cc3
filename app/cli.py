"""The command `sluice`."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from app import __version__
from app.cli_bench import bench
from app.cli_buckets import buckets
from app.cli_common import ConfigOption, DataOption, IndexOption, fail, load_settings
from app.cli_fsck import fsck_command
from app.cli_iam import iam_command
from app.cli_import import import_command
from app.cli_index import indexes, migrate_command
from app.cli_keys import keys
from app.cli_probe import probe_command
from app.cli_rebuild import rebuild_command
from app.cli_scrub import scrub_command
from app.cli_users import users
from app.settings import Settings

cli = typer.Typer(
    name="sluice",
    help="An S3 gateway over a directory.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
cli.add_typer(users, name="user")
cli.add_typer(bench, name="bench")
cli.add_typer(buckets, name="bucket")
cli.add_typer(indexes, name="index")
cli.add_typer(keys, name="key")
cli.command("fsck")(fsck_command)
cli.command("iam")(iam_command)
cli.command("import")(import_command)
cli.command("migrate")(migrate_command)
cli.command("probe")(probe_command)
cli.command("rebuild")(rebuild_command)
cli.command("scrub")(scrub_command)


@cli.command()
def version() -> None:
    """Print the version."""
    print(__version__)


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
) -> None:
    """Serve S3. Settings that are no option here come from the environment (prefix SLUICE_, see README)."""
    from app.server.launcher import run
    from app.startup import CannotStart, prepare

    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    os.umask(0o077)  # directories that are made on the way to others are nobody else's either
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
    )
    if (settings.tls_cert is None) != (settings.tls_key is None):
        fail("give both --tls-cert and --tls-key, or neither")
    _check_certificate(settings)

    def before_workers(settings: Settings) -> None:
        credentials = prepare(settings)
        if not credentials.generated:
            return
        if sys.stdout.isatty():
            print(f"access key: {credentials.access_key}\nsecret key: {credentials.secret_key}", flush=True)
        else:
            print(f"sluice: the generated keys are in {settings.home / 'credentials'}", flush=True)

    try:
        code = run(settings, before_workers=before_workers)
    except CannotStart as error:
        fail(str(error))
    raise typer.Exit(code)


def _check_certificate(settings: Settings) -> None:
    """Say which files cannot be used: what a worker would say of them names none."""
    if settings.tls_cert is None:
        return
    import ssl

    try:
        # without an answer the library would ask the terminal for the key's passphrase
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, lambda: "")
    except OSError as error:
        why = error.strerror or str(error)
        fail(f"the certificate {settings.tls_cert} with the key {settings.tls_key} cannot be used: {why}")


def main() -> None:
    """Entry point of the command."""
    cli()


if __name__ == "__main__":
    main()
