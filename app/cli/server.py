"""`sluice server`: MinIO's command line for `sluice serve`, so that a set-up made for MinIO starts as it is.

Source: MinIO's reference of `minio server`.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import SecretStr

from sluice_s3.app.cli.common import fail, load_settings
from sluice_s3.app.cli.serving import begin, start
from sluice_s3.app.settings import Settings

VOLUMES, ADDRESS, CONSOLE_ADDRESS = "MINIO_VOLUMES", "MINIO_ADDRESS", "MINIO_CONSOLE_ADDRESS"
DEFAULT_KEY = "minioadmin"
"""MinIO's access key and secret key where none are given."""
OWN_DIRECTORIES = frozenset({"data", "index", "journals", "probe"})
"""Names in a store's directory that are the store's own and could be bucket names."""
FORMAT = ".minio.sys"
"""What MinIO keeps beside its own data."""


def server(
    directories: Annotated[
        list[str] | None, typer.Argument(metavar="DIR", envvar=VOLUMES, help="Directory of the data.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", envvar=ADDRESS, help="Of the S3 listener; without HOST: all addresses."),
    ] = None,
    console_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar=CONSOLE_ADDRESS,
            help="Of the admin listener; without HOST: SLUICE_ADMIN_HOST. Default: any free port.",
        ),
    ] = None,
    certs_dir: Annotated[
        Path | None, typer.Option("--certs-dir", "-S", help="Directory of public.crt and private.key, if any.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log warnings and errors only, and no requests.")] = False,
) -> None:
    """Serve S3 by MinIO's command line.

    Without keys they are minioadmin and minioadmin, as MinIO's, with a warning. An empty directory in DIR becomes a
    bucket, new buckets block no public access, so that a policy can give it, and clients may sign with any region. All
    else is as with `sluice serve`.
    """
    from sluice_s3.app.store.regions import ANY

    data = _one_directory(directories or [])
    options: dict[str, Any] = {"data": data}
    if address is not None:
        host, port = _split(address, "--address")
        options |= {"host": host or "0.0.0.0", "port": port}  # noqa: S104 - as MinIO's
    if console_address is not None:
        host, port = _split(console_address, "--console-address")
        options |= {"admin_host": host or None, "admin_port": port}
    if certs_dir is not None:
        options |= _certificate(certs_dir)
    begin((VOLUMES, ADDRESS, CONSOLE_ADDRESS), level=logging.WARNING if quiet else logging.INFO)
    settings = load_settings(**options)
    # as MinIO's, where nothing is given
    defaults = {"admin_port": 0, "default_public_access_block": False, "region": ANY}
    defaults |= {"access_log": False} if quiet else {}
    changes: dict[str, Any] = {name: value for name, value in defaults.items() if name not in settings.model_fields_set}
    if settings.root_access_key is None and settings.root_secret_key is None and not _has_keys(settings):
        changes |= {"root_access_key": DEFAULT_KEY, "root_secret_key": SecretStr(DEFAULT_KEY)}
    if names := _empty_directories(data):
        changes["default_buckets"] = ",".join([settings.default_buckets, *names])
    start(settings.model_copy(update=changes), allow_well_known=True)


def _one_directory(given: list[str]) -> Path:
    """Return the one directory of the arguments; exit with 2 for what only MinIO knows."""
    for argument in given:
        if argument.startswith("-"):
            fail(
                f"server: {argument} is an option of MinIO that has no counterpart here (see `sluice server --help`)", 2
            )
        if "://" in argument or "..." in argument:
            fail(
                f"server: {argument}: erasure coding and servers that form a cluster are not here: give one directory",
                2,
            )
    if len(given) > 1:
        fail(f"server: {len(given)} directories are erasure coding, which is not here: give one directory", 2)
    if not given:
        fail("server: give the directory of the data", 2)
    return Path(given[0])


def _split(address: str, option: str) -> tuple[str, int]:
    """Return host and port of an address; exit with 2 if it is none."""
    host, colon, port = address.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()):
        fail(f"server: {option}: {address!r} is not HOST:PORT", 2)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _certificate(directory: Path) -> dict[str, Path]:
    """Return the certificate's settings; none where the directory has none, as MinIO's charts without TLS give it."""
    certificate, key = directory / "public.crt", directory / "private.key"
    if not (certificate.exists() or key.exists()):
        return {}
    return {"tls_cert": certificate, "tls_key": key}


def _has_keys(settings: Settings) -> bool:
    from sluice_s3.app.access.root_credentials import FILE_NAME

    return os.path.lexists(settings.home / FILE_NAME)


def _empty_directories(data: Path) -> list[str]:
    """Return the bucket names of directories without an entry, and say what is not touched.

    Exits with 1 for MinIO's own data.
    """
    from sluice_s3.app.s3.wire.target import is_bucket_name

    if (data / FORMAT).exists():
        fail(
            f"{data.absolute()} holds data in MinIO's own format, which only MinIO reads: start on an empty directory "
            "and copy the buckets from a running MinIO (docs/guides/from-minio.md)"
        )
    empty: list[str] = []
    full: list[str] = []
    try:
        with os.scandir(data) as entries:
            places = [one for one in entries if one.name not in OWN_DIRECTORIES and one.is_dir(follow_symlinks=False)]
        for one in sorted(places, key=lambda place: place.name):
            if is_bucket_name(one.name):
                with os.scandir(one) as inside:
                    (full if any(inside) else empty).append(one.name)
    except OSError:
        return []  # the start names what it cannot use
    if full:
        print(
            f"sluice: directories of {data.absolute()} hold files that are no objects, and are left alone: "
            f"{', '.join(full)} (to serve them: `sluice import`, docs/guides/from-minio.md)",
            file=sys.stderr,
            flush=True,
        )
    return empty
