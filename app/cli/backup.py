"""`sluice backup` and `sluice restore`."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from sluice_s3.app.cli.rebuild import show_progress, without_server
from sluice_s3.app.cli.transfer import (
    CaFileOption,
    InsecureOption,
    ProfileOption,
    RegionOption,
    VirtualHostOption,
    other_endpoint,
    require_boto3,
)
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.app.jobs.backup.check import Report
    from sluice_s3.app.jobs.backup.create import Summary
    from sluice_s3.app.jobs.backup.place import BackupPlace
    from sluice_s3.app.jobs.integrity.fsck import Report as FsckReport

DAMAGED = 8
"""Exit code: data is missing or damaged."""
SECRETS = (
    "SECRET: it holds the secret keys of all accounts and users, in its index{}: guard it as you guard the gateway"
)
Backups = Annotated[str, typer.Argument(metavar="BACKUPS", help="Directory of backups, or s3://BUCKET/PREFIX.")]
EndpointOption = Annotated[str | None, typer.Option("--endpoint", help="URL of the S3 of s3://BUCKET/PREFIX.")]


def backup_command(
    backups: Backups,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    keep: Annotated[
        int | None, typer.Option(min=1, help="Then remove all but the newest KEEP backups, and what only they need.")
    ] = None,
    without_keys: Annotated[
        bool, typer.Option("--without-keys", help="Leave out the master key, root's keys, the admin token, the config.")
    ] = False,
    as_json: JsonOption = False,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    profile: ProfileOption = None,
    virtual_host: VirtualHostOption = False,
    ca_file: CaFileOption = None,
    insecure_tls: InsecureOption = False,
) -> None:
    """Back up index, data and keys into BACKUPS; may run beside a server.

    What earlier backups there have is not copied again. The keys for s3:// are AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, or those of a profile. Exit codes: 0 done; 1 it failed; 8 it is made, but something
    was missing or unreadable in the stores (listed).
    """
    import apsw

    from sluice_s3.app.jobs.backup.create import create

    settings = load_settings(data=data, config=config, index=index)
    if settings.index_is_missing:
        fail("there is no index here")
    try:
        remote = _Remote(endpoint, region, profile, virtual_host, ca_file, insecure_tls)
        with closing(_open_place(backups, remote)) as place:
            with show_progress() as progress:
                made = asyncio.run(create(settings, place, keys=not without_keys, progress=progress))
            pruned = None
            if keep is not None:
                with place.locked(alone=True):
                    pruned = place.prune(keep)
    except (DomainError, DriverError, OSError, apsw.Error) as error:
        fail(f"the backup failed: {describe(error)}")
    if as_json:
        print(json.dumps({**made._asdict(), "pruned": pruned}))
    else:
        _print_made(made, pruned, place.name)
    raise typer.Exit(DAMAGED if made.faults else 0)


def restore_command(
    backups: Backups,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    backup: Annotated[str | None, typer.Option("--backup", help="Name of a backup; unset: the newest.")] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Only list the backups.")] = False,
    check_only: Annotated[bool, typer.Option("--check", help="Only read the backup and compare it.")] = False,
    as_json: JsonOption = False,
    endpoint: EndpointOption = None,
    region: RegionOption = None,
    profile: ProfileOption = None,
    virtual_host: VirtualHostOption = False,
    ca_file: CaFileOption = None,
    insecure_tls: InsecureOption = False,
) -> None:
    """Restore a backup of BACKUPS into empty directories, and check the result.

    No server may run there. One that was interrupted is run again. Exit codes: 0 done, nothing is wrong; 1 it failed;
    8 something is damaged or missing (listed).
    """
    import apsw

    from sluice_s3.app.startup import CannotStart

    try:
        remote = _Remote(endpoint, region, profile, virtual_host, ca_file, insecure_tls)
        with closing(_open_place(backups, remote)) as place:
            if list_only:
                _print_names(place, as_json)
            elif check_only:
                _check(place, backup, as_json)
            else:
                _restore(load_settings(data=data, config=config, index=index), place, backup, as_json)
    except (DomainError, DriverError, OSError, apsw.Error, CannotStart) as error:
        fail(f"{'the check' if check_only else 'the restore'} failed: {describe(error)}")


class _Remote(NamedTuple):
    """The options of backups in a bucket."""

    endpoint: str | None
    region: str | None
    profile: str | None
    virtual_host: bool
    ca_file: Path | None
    insecure_tls: bool


def _open_place(backups: str, remote: _Remote) -> BackupPlace:
    """Return the place of backups that the command names."""
    from sluice_s3.app.jobs.backup.directory import BackupDirectory

    if not backups.startswith("s3://"):
        if any(remote):
            fail("--endpoint and the options of S3 are for s3://BUCKET/PREFIX", 2)
        return BackupDirectory(Path(backups))
    require_boto3()
    from sluice_s3.app.jobs.backup.bucket import THREADS, BackupBucket, parse_url

    if remote.endpoint is None:
        fail("give --endpoint, the URL of the S3 where the backups are", 2)
    try:
        bucket, prefix = parse_url(backups)
    except ValueError as error:
        fail(str(error), 2)
    return BackupBucket(other_endpoint(remote.endpoint, *remote[1:], parallel=THREADS), bucket, prefix)


def _print_names(place: BackupPlace, as_json: bool) -> None:
    names = place.snapshots()
    if not names:
        fail(f"there is no backup in {place.name}")
    print(json.dumps(names) if as_json else "\n".join(names))


def _check(place: BackupPlace, name: str | None, as_json: bool) -> None:
    from sluice_s3.app.jobs.backup.check import check

    with show_progress() as progress:
        report = check(place, name, progress)
    _print_report(report, "checked", as_json)
    raise typer.Exit(0 if report.whole else DAMAGED)


def _restore(settings: Settings, place: BackupPlace, name: str | None, as_json: bool) -> None:
    from sluice_s3.app.jobs.backup.restore import Restore

    with show_progress() as progress:
        work = Restore(settings, place, name, progress)  # before the lock, whose directory may lie in a store
        with without_server(settings):
            report = work.run()
    found = asyncio.run(_fsck(settings))
    _print_report(report, "restored", as_json, found)
    if not as_json:
        if work.keys:
            print(f"keys: {', '.join(work.keys)} in {settings.home}")
        if work.needs_master_key and "master-key" not in work.keys:
            print(f"the backup has no master key: put it into {settings.home / 'master-key'} before you start")
        elif "master-key" in work.keys and settings.index_url is not None:
            print(f"an index in Postgres wants SLUICE_MASTER_KEY_FILE={settings.home / 'master-key'}")
    raise typer.Exit(DAMAGED if not report.whole or found.damaged else 0)


async def _fsck(settings: Settings) -> FsckReport:
    from sluice_s3.app.jobs.integrity.fsck import Report, fsck
    from sluice_s3.app.startup import open_store

    report = Report()
    async with open_store(settings) as store:
        for one in store.all.values():
            report.add(await fsck(one, repair=False))
    return report


def _print_made(made: Summary, pruned: tuple[int, int, int] | None, backups: str) -> None:
    print(
        f"backup {made.name}: {made.buckets} buckets, {made.versions} versions, {made.files} files of "
        f"{made.bytes} bytes; copied {made.copied_files} files of {made.copied_bytes} bytes, and the index of "
        f"{made.index_bytes} bytes"
    )
    if made.changed:
        print(f"{made.changed} plain files changed meanwhile: they are there as they were a moment later")
    if made.quarantined:
        print(f"{made.quarantined} blobs were known to be damaged, and are there as they are: see `sluice scrub`")
    if pruned is not None:
        print(f"removed {pruned[0]} older backups, and {pruned[1]} files of {pruned[2]} bytes that only they needed")
    for store, path, reason in made.faults:
        print(f"MISSING  {store}: {path}: {reason}")
    if made.has_ring and "master-key" not in made.keys:
        print("NO MASTER KEY: without it what is encrypted is lost. Keep it elsewhere", file=sys.stderr)
    keys = f" and in {backups}/snapshots/{made.name}/keys: {', '.join(made.keys)}" if made.keys else ""
    print(SECRETS.format(keys), file=sys.stderr)


def _print_report(report: Report, done: str, as_json: bool, found: FsckReport | None = None) -> None:
    if as_json:
        print(json.dumps({**asdict(report), "whole": report.whole, "fsck": None if found is None else asdict(found)}))
        return
    for name, reason in report.damaged:
        print(f"DAMAGED  {name}: {reason}")
    for name, reason in report.missing:
        print(f"MISSING  {name}: {reason}, when the backup was made")
    if found is not None:
        for fact in (*found.missing, *found.short):
            print(f"LOST     {fact['bucket']}/{fact['key']}")
    whole = report.whole and (found is None or not found.damaged)
    rows = "" if found is None else f"; {found.rows} references, {found.blobs} blobs compared"
    verdict = "whole" if whole else "NOT WHOLE"
    print(f"{done} {report.backup}: {report.files} files of {report.bytes} bytes{rows}: {verdict}")
