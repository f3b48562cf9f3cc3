"""`sluice share`: a presigned URL of an object."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.access.presigned import LONGEST_SECONDS, Signer, Target, presign
from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, fail, load_settings
from sluice_s3.app.cli.opened_index import find_gateway, run_with_index
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.index.iam.rows import AccessKey

UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def share_command(
    url: Annotated[str, typer.Argument(metavar="s3://BUCKET/KEY", help="The object.")],
    expires: Annotated[str, typer.Option(help="How long it works: seconds, or with a unit: 15m, 12h, 7d.")] = "1h",
    upload: Annotated[bool, typer.Option("--upload", help="A URL to PUT the object to.")] = False,
    version: Annotated[str, typer.Option("--version-id", help="A version of the object.")] = "",
    endpoint: Annotated[
        str | None, typer.Option(help="URL that others reach the gateway at; default where it listens.")
    ] = None,
    access_key: Annotated[str | None, typer.Option(help="Key that signs; default the first account's.")] = None,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Print a presigned URL, with which anybody can read an object for a while, or write it.

    It has the rights of the key that signs it, and ends early when that key is removed.

    Exit codes: 1 it failed, 2 wrong arguments, 3 no such bucket, object or key.
    """
    match = re.fullmatch(r"s3://([^/]+)/(.+)", url, re.DOTALL)
    if match is None:
        fail(f"{url!r} is not s3://BUCKET/KEY", 2)
    if upload and version:
        fail("a version cannot be written", 2)
    seconds = _seconds(expires)
    settings = load_settings(data=data, config=config, index=index)
    bucket, key = match.groups()
    signer = run_with_index(
        settings, lambda opened: _signer(opened, settings, access_key, bucket, None if upload else (key, version))
    )
    from sluice_s3.app.store.regions import FIRST  # it needs the index

    target = Target("PUT" if upload else "GET", bucket, key, {"versionId": version} if version else {})
    region = FIRST if settings.region == "auto" else settings.region
    print(presign(_endpoint(settings, endpoint), region, Signer(signer.access_key, signer.secret), target, seconds))


def _seconds(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,7})([smhd]?)", text)
    seconds = int(match[1]) * UNIT_SECONDS[match[2]] if match else 0
    if not 1 <= seconds <= LONGEST_SECONDS:
        fail(f"--expires {text}: give 1 second to 7 days, as 900, 15m, 12h or 7d", 2)
    return seconds


async def _signer(
    index: Index, settings: Settings, access_key: str | None, bucket: str, wanted: tuple[str, str] | None
) -> AccessKey:
    """Return the key that signs, once bucket and object are known to exist."""
    found = await index.bucket(bucket)
    if found is None:
        fail("no such bucket", 3)
    place = settings.named_stores.get(found.store)
    if wanted is not None and not (place and place.layout == "tree"):  # the index may not know a new file yet
        row = await index.version(found.id, wanted[0], wanted[1] or None)
        if row is None or row.is_marker:
            fail("no such object", 3)
    if access_key is None:
        # of the index: the settings of this shell need not be those of the server
        first = next(iter(await index.accounts()), None)
        usable = [] if first is None or first[0].disabled else [one for one in first[1] if not one.disabled]
        if not usable:
            fail("the first account has no key that works: give --access-key", 3)
        return usable[0]
    row_of_key = await index.access_key(access_key)
    if row_of_key is None or row_of_key.disabled or row_of_key.token:
        fail("no such access key, or it is disabled or temporary", 3)
    return row_of_key


def _endpoint(settings: Settings, endpoint: str | None) -> str:
    if endpoint is None:
        return find_gateway(settings, "--endpoint")
    if not re.fullmatch(r"https?://[^/?#]+/?", endpoint):
        fail(f"--endpoint {endpoint}: give http://HOST[:PORT] or https://HOST[:PORT]", 2)
    return endpoint
