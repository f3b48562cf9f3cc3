"""`sluice pull` and `sluice push`: buckets from another S3 to this gateway, and the other way."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, JsonOption, fail, load_settings, progress_bar
from sluice_s3.app.cli.opened_index import find_gateway
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from collections import Counter

    from sluice_s3.app.transfer.copying import Choices
    from sluice_s3.app.transfer.endpoints import Connection, Endpoint
    from sluice_s3.app.transfer.report import Report

PARTIAL = 3
PARALLEL = 16
PULL = """Copy buckets from another S3 into this gateway, which must run.

    Versions, delete markers, their times and order, tags, metadata, locks and settings come over. The same command
    goes on after a kill, and later takes what is new. The other S3's keys are AWS_ACCESS_KEY_ID and
    AWS_SECRET_ACCESS_KEY, or those of a profile.

    Exit codes: 0 all is here, 1 it could not begin or go on, 3 something could not be taken.
    """
PUSH = """Copy buckets of this gateway, which must run, to another S3: what is missing there.

    It removes nothing there, but adds delete markers. The same command goes on after a kill, and later takes what is
    new. The other S3's keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or those of a profile.

    Exit codes: 0 all is there, 1 it could not begin or go on, 3 something could not be taken.
    """

BucketsArgument = Annotated[list[str], typer.Argument(help="s3://BUCKET or s3://BUCKET/PREFIX; more than one.")]
EndpointOption = Annotated[str, typer.Option("--endpoint", help="URL of the other S3.")]
ToOption = Annotated[str | None, typer.Option("--to", help="Name of the copy of the one bucket, if it is another.")]
RegionOption = Annotated[str | None, typer.Option(help="Region of the other S3 [env AWS_REGION]; us-east-1.")]
ProfileOption = Annotated[str | None, typer.Option(help="Profile of AWS's files with the keys of the other S3.")]
VirtualHostOption = Annotated[bool, typer.Option("--virtual-host", help="BUCKET.HOST; else HOST/BUCKET.")]
CaFileOption = Annotated[
    Path | None, typer.Option(exists=True, dir_okay=False, help="PEM file of the authorities of the other S3.")
]
InsecureOption = Annotated[bool, typer.Option("--insecure-tls", help="Take any certificate of the other S3.")]
GatewayOption = Annotated[str | None, typer.Option(help="URL of this gateway; default where it listens.")]
CurrentOption = Annotated[bool, typer.Option("--current-only", help="Objects without their older versions.")]
SizeOption = Annotated[bool, typer.Option("--size-only", help="Compare no ETags, as where they are no MD5s.")]
AclOption = Annotated[bool, typer.Option("--acl", help="ACLs of objects too: one more request for each.")]
SettingsOption = Annotated[bool, typer.Option("--settings/--no-settings", help="Settings of whole buckets too.")]
ClassOption = Annotated[list[str] | None, typer.Option("--class", help="THEIRS=OURS: a storage class; repeat.")]
ParallelOption = Annotated[int, typer.Option(min=1, max=256, help="Versions, and parts, at a time.")]
ReportOption = Annotated[Path | None, typer.Option(help="File for a line of JSON for each thing not taken.")]
StateOption = Annotated[Path | None, typer.Option(help="Directory that names open uploads of killed runs.")]


def _make_command(*, pull: bool) -> Callable[..., None]:
    def command(
        buckets: BucketsArgument,
        endpoint: EndpointOption,
        to: ToOption = None,
        region: RegionOption = None,
        profile: ProfileOption = None,
        virtual_host: VirtualHostOption = False,
        ca_file: CaFileOption = None,
        insecure_tls: InsecureOption = False,
        gateway: GatewayOption = None,
        current_only: CurrentOption = False,
        size_only: SizeOption = False,
        acl: AclOption = False,
        settings: SettingsOption = True,
        classes: ClassOption = None,
        parallel: ParallelOption = PARALLEL,
        report: ReportOption = None,
        state: StateOption = None,
        data: DataOption = None,
        config: ConfigOption = None,
        as_json: JsonOption = False,
    ) -> None:
        named = [_bucket(text) for text in buckets]
        if to is not None and len(named) > 1:
            fail("--to is for one bucket", 2)
        require_boto3()
        from sluice_s3.app.transfer.copying import Choices

        other = other_endpoint(endpoint, region, profile, virtual_host, ca_file, insecure_tls, parallel=parallel)
        here = _gateway(load_settings(data=data, config=config), gateway, parallel)
        choices = Choices(current_only, size_only, acl, settings, _classes(classes or []))
        ends = (other, here) if pull else (here, other)
        _run(ends, [(name, prefix, to or name) for name, prefix in named], choices, (report, state, parallel), as_json)

    command.__doc__ = PULL if pull else PUSH
    return command


pull_command = _make_command(pull=True)
push_command = _make_command(pull=False)


def require_boto3() -> None:
    """Exit with 1 when the package that talks to other S3s is not installed."""
    if find_spec("boto3") is None:
        fail("this command needs boto3: pip install 'sluice-s3[transfer]'")


def other_endpoint(
    url: str,
    region: str | None,
    profile: str | None,
    virtual_host: bool,
    ca_file: Path | None,
    insecure_tls: bool,
    *,
    parallel: int,
) -> Endpoint:
    """Return the other S3 as the options describe it."""
    from sluice_s3.app.transfer.endpoints import Endpoint

    chosen_region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    verify = False if insecure_tls else None if ca_file is None else str(ca_file)
    return Endpoint(url, chosen_region, None, None, profile, virtual_host, verify, parallel)


def _bucket(text: str) -> tuple[str, str]:
    name, _, prefix = text.removeprefix("s3://").partition("/")
    if not text.startswith("s3://") or not name:
        fail(f"{text!r} is not s3://BUCKET or s3://BUCKET/PREFIX", 2)
    return name, prefix


def _classes(texts: list[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for text, (theirs, _, ours) in zip(texts, pairs, strict=True):
        if not theirs or not ours:
            fail(f"{text!r} is not THEIRS=OURS", 2)
    return {theirs: ours for theirs, _, ours in pairs}


def _gateway(settings: Settings, url: str | None, parallel: int) -> Endpoint:
    """Return this gateway as an endpoint, as its first account."""
    from sluice_s3.app.access.root_credentials import FILE_NAME, WeakCredentials, root_credentials
    from sluice_s3.app.store.regions import Regions
    from sluice_s3.app.transfer.endpoints import Endpoint

    if settings.root_access_key is None and not (settings.home / FILE_NAME).exists():
        path = settings.home / FILE_NAME
        fail(f"the keys of this gateway are not known: there is no {path}; set SLUICE_ROOT_ACCESS_KEY and _SECRET_KEY")
    try:
        keys = root_credentials(settings)
    except (WeakCredentials, OSError) as error:
        fail(str(error))
    if url is None:
        url = find_gateway(settings, "--gateway")
    region = Regions(settings.region).default
    return Endpoint(url, region, keys.access_key, keys.secret_key, connections=parallel)


def _run(
    ends: tuple[Endpoint, Endpoint],
    buckets: list[tuple[str, str, str]],
    choices: Choices,
    how: tuple[Path | None, Path | None, int],
    as_json: bool,
) -> None:
    from sluice_s3.app.transfer.endpoints import Connection
    from sluice_s3.app.transfer.errors import TransferError
    from sluice_s3.app.transfer.report import Report

    report_path, state, parallel = how
    try:
        report = Report(report_path)
    except OSError as error:
        fail(f"{report_path}: {error.strerror}", 2)
    failure = ""
    try:
        source, target = map(Connection, ends)
        for there, prefix, here in buckets:
            _copy_bucket(source, target, (there, prefix, here), choices, report, state, parallel)
    except TransferError as error:
        failure = str(error)
    except KeyboardInterrupt:
        failure = "stopped: the same command goes on from here"
    finally:
        report.close()
    if as_json:
        print(json.dumps(report.as_json()))
    elif report.counts or not failure:
        print("\n".join(report.lines()))
    if failure:
        fail(failure)
    if report.counts["not_taken"]:
        raise typer.Exit(PARTIAL)


def _copy_bucket(
    source: Connection,
    target: Connection,
    names: tuple[str, str, str],
    choices: Choices,
    report: Report,
    state: Path | None,
    parallel: int,
) -> None:
    from sluice_s3.app.transfer.endpoints import Bucket
    from sluice_s3.app.transfer.open_uploads import default_directory
    from sluice_s3.app.transfer.run import Transfer

    there, prefix, here = names
    with progress_bar() as progress:
        task = progress.add_task(there, total=None)

        def show(counts: Counter[str]) -> None:
            done = counts["objects"] + counts["markers"] + counts["present"]
            progress.update(task, completed=done, description=f"{there} {counts['bytes'] / 1e6:,.1f} MB")

        ends = Bucket(source, there), Bucket(target, here)
        Transfer(*ends, choices, report, state or default_directory(), parallel, show).run(prefix)
