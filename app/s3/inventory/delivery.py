"""Writes the inventories that are due: one worker, a file at a time, so that it can go on where it was killed.

What was written is noted in the index behind each file. A file whose note was lost is written again under another name,
and no manifest names the first.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import orjson
from xxhash import xxh3_64_hexdigest

from app.access.account import account_number
from app.access.authorize import authorize_service
from app.crash import crash_point
from app.errors import DomainError
from app.index.rows import Bucket, ListedVersion
from app.index.schema import CURRENT
from app.index.version_rows import ListedAny
from app.s3 import internal
from app.s3.errors import AccessDenied, S3Error
from app.s3.inventory.configuration import ARN, CSV, MARK, WEEKLY, Inventory, inventories_of
from app.s3.inventory.rows import NEED_VERSION, Entry, columns_of, file_of, snake, values_of

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

logger = logging.getLogger("sluice.jobs")

SERVICE = "s3.amazonaws.com"
ROWS = 50_000
"""Of one file."""
PAGE = 1000
AGAIN = 300.0
"""Seconds before one that could not be written is tried again."""
REAL_DAY = 86_400
SUNDAY = 3
"""Days from the epoch, a Thursday, to the first Sunday."""


class Progress(NamedTuple):
    """How far a report is. `period` counts days or weeks; `begun` is its name, the minute that it was begun."""

    period: int
    begun: str = ""
    key: str = ""
    version_id: str = ""
    files: tuple[dict[str, Any], ...] = ()
    of: str = ""
    """Says of which configuration, so that another one begins anew."""
    done: bool = False


def note_of(bucket: Bucket, found: Inventory) -> str:
    """The note of the index that says how far the last report is."""
    return f"inventory:{bucket.id}:{found.id}"


class Inventories:
    """Writes what is due. `inventory_day_seconds` is how long a day is."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._index = gateway.index
        self._day = gateway.settings.inventory_day_seconds
        self._seen = -1
        self._buckets: list[Bucket] = []
        self._done: dict[str, tuple[int, Inventory]] = {}
        self._later: dict[str, float] = {}

    async def run_once(self) -> None:
        """Write the next file of each report that is due."""
        generation = self._index.generation
        if generation != self._seen:
            self._buckets = await self._index.configured_buckets(MARK)
            self._seen = generation
        for bucket in self._buckets:
            for found in inventories_of(bucket).values():
                if found.enabled:
                    await self._go_on(bucket, found)

    def _period(self, found: Inventory) -> int:
        day = int(time.time()) // self._day
        return (day - SUNDAY) // 7 if found.frequency == WEEKLY else day

    async def _go_on(self, source: Bucket, found: Inventory) -> None:
        name, period = note_of(source, found), self._period(found)
        if self._done.get(name) == (period, found) or time.monotonic() < self._later.get(name, 0.0):
            return
        noted = await self._index.note(name)
        progress = _read(noted) if noted else Progress(-1)
        if progress.done and progress.period >= period:
            self._done[name] = (period, found)
            return
        of = xxh3_64_hexdigest(orjson.dumps(list(found)))
        if progress.done or progress.of != of:
            progress = Progress(period, f"{datetime.now(UTC):%Y-%m-%dT%H-%MZ}", of=of)
        try:
            progress = await self._write(source, found, progress)
        except (DomainError, S3Error) as error:
            self._later[name] = time.monotonic() + min(AGAIN, self._day)
            logger.warning(
                "inventory %s of bucket %s cannot be written: %s", found.id, source.name, type(error).__name__
            )
            return
        await self._index.set_note(name, orjson.dumps(progress._asdict()).decode())

    async def _write(self, source: Bucket, found: Inventory, progress: Progress) -> Progress:
        """The next file, or what comes behind the last."""
        destination = await self._gateway.bucket(found.bucket)
        if found.account and found.account != account_number(destination.owner_id):
            raise AccessDenied()
        entries, key, version_id = await self._entries(source, found, progress)
        files = progress.files
        if entries or not files:
            rows = [values_of(found, source, entry) for entry in entries]
            data, end, kind = await asyncio.to_thread(file_of, found, rows)
            name = f"{_place(source, found)}/data/{uuid4()}.{end}"
            await self._put(source, destination, name, data, kind, found)
            made = {"key": name, "size": len(data), "MD5checksum": _md5(data)}
            files = (*files, made)
            crash_point("inventory.written")
        progress = progress._replace(key=key, version_id=version_id, files=files)
        if key:
            return progress
        await self._finish(source, destination, found, progress)
        return Progress(progress.period, progress.begun, of=progress.of, done=True)

    async def _entries(self, source: Bucket, found: Inventory, progress: Progress) -> tuple[list[Entry], str, str]:
        """What comes next, and where that ends; an empty key when there is no more."""
        listed: list[ListedAny] = []
        key, version_id = progress.key, progress.version_id
        while len(listed) < ROWS:
            if found.versions:
                page = await self._index.list_versions(source.id, found.filter, "", key, version_id, PAGE)
                listed += page.entries
                more, key, version_id = page.truncated, page.last_key, page.last_version_id
            else:
                current = await self._index.list_current(source.id, found.filter, "", key, PAGE)
                listed += map(_current, current.entries)
                more, key = current.truncated, listed[-1].key if listed else ""
            if not more:
                key = version_id = ""
                break
            await asyncio.sleep(0)
        return await self._looked_up(source, found, listed), key, version_id

    async def _looked_up(self, source: Bucket, found: Inventory, listed: Sequence[ListedAny]) -> list[Entry]:
        if NEED_VERSION.isdisjoint(found.fields):
            return [Entry(one, None) for one in listed]
        entries = []
        for one in listed:
            version = await self._index.version(source.id, one.key, one.version_id or None)
            if version is not None:
                entries.append(Entry(one, version))
        return entries

    async def _finish(self, source: Bucket, destination: Bucket, found: Inventory, progress: Progress) -> None:
        """The manifest, its checksum, and the list of files for Hive."""
        begun = datetime.strptime(progress.begun, "%Y-%m-%dT%H-%MZ").replace(tzinfo=UTC)
        columns = columns_of(found)
        schema = ", ".join(columns) if found.format == CSV else _message(columns)
        manifest = orjson.dumps(
            {
                "sourceBucket": source.name,
                "destinationBucket": ARN + destination.name,
                "version": "2016-11-30",
                "creationTimestamp": str(int(begun.timestamp() * 1000)),
                "fileFormat": found.format,
                "fileSchema": schema,
                "files": list(progress.files),
            },
            option=orjson.OPT_INDENT_2,
        )
        place = _place(source, found)
        links = "\n".join(f"s3://{destination.name}/{one['key']}" for one in progress.files).encode()
        for name, data, kind in (
            (f"{place}/hive/dt={begun:%Y-%m-%d-%H-%M}/symlink.txt", links, "text/plain"),
            (f"{place}/{progress.begun}/manifest.json", manifest, "application/json"),
            (f"{place}/{progress.begun}/manifest.checksum", _md5(manifest).encode(), "text/plain"),
        ):
            await self._put(source, destination, name, data, kind, found)

    async def _put(
        self, source: Bucket, destination: Bucket, key: str, data: bytes, kind: str, found: Inventory
    ) -> None:
        if not may_deliver(source, destination, key):
            raise AccessDenied()
        method = "AES256" if found.encryption else ""
        await internal.put(self._gateway, destination, key, data, kind, encryption_method=method)


def may_deliver(source: Bucket, destination: Bucket, key: str) -> bool:
    """Whether the inventory of a bucket may be written into another one.

    "Granting permissions for Amazon S3 Inventory", Amazon S3 User Guide.
    """
    values = {
        "aws:sourcearn": ARN + source.name,
        "aws:sourceaccount": account_number(source.owner_id),
        "aws:securetransport": "true",
        "aws:requestedregion": destination.region,
        "aws:resourceaccount": account_number(destination.owner_id),
        "aws:currenttime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(int(time.time())),
        "s3:x-amz-acl": "bucket-owner-full-control",
    }
    return authorize_service(SERVICE, "s3:PutObject", destination, key, values)


def _read(noted: str) -> Progress:
    found = Progress(**orjson.loads(noted))
    return found._replace(files=tuple(found.files))


def _current(one: ListedVersion) -> ListedAny:
    """An object as a listing of versions shows it."""
    return ListedAny(
        one.key,
        one.size,
        one.etag,
        one.modified,
        one.storage_class,
        one.checksum_algorithm,
        one.checksum_type,
        "",
        CURRENT,
    )


def _place(source: Bucket, found: Inventory) -> str:
    prefix = f"{found.prefix.rstrip('/')}/" if found.prefix else ""
    return f"{prefix}{source.name}/{found.id}"


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def _message(columns: Sequence[str]) -> str:
    kinds = {
        "Size": "optional int64",
        "LastModifiedDate": "optional int64",
        "IsLatest": "optional boolean",
        "IsDeleteMarker": "optional boolean",
        "IsMultipartUploaded": "optional boolean",
    }
    notes = {"LastModifiedDate": " (TIMESTAMP(MILLIS,true))"}
    fields = (
        f"{kinds[name]} {snake(name)}{notes.get(name, '')};"
        if name in kinds
        else f"{'required' if name in ('Bucket', 'Key') else 'optional'} binary {snake(name)} (UTF8);"
        for name in columns
    )
    return f"message s3.inventory {{ {' '.join(fields)} }}"
