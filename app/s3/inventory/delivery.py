"""Writes due inventories, file by file, so that it can resume after a kill.

One worker does so at a time. The progress is noted in the index after each file. A file whose note was lost is written
again under another name, and no manifest names the first.
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

from sluice_s3.app.access.account import account_number
from sluice_s3.app.access.authorize import authorize_service
from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import ListedVersion
from sluice_s3.app.index.schema.tables import CURRENT
from sluice_s3.app.index.versioning.rows import ListedVersionEntry
from sluice_s3.app.s3.errors import AccessDenied, S3Error
from sluice_s3.app.s3.inventory.rows import NEEDS_VERSION, Entry, inventory_columns, render_file, row_values, snake_case
from sluice_s3.app.s3.inventory.xml import ARN, CSV, MARK, WEEKLY, Inventory, inventories_of
from sluice_s3.app.s3.objects import system_put

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

logger = logging.getLogger("sluice.jobs")

SERVICE = "s3.amazonaws.com"
ROWS_PER_FILE = 50_000
"""Rows of one file."""
PAGE_ROWS = 1000
RETRY_SECONDS = 300.0
"""Seconds before a failed report is tried again."""
SUNDAY = 3
"""Days from the epoch, a Thursday, to the first Sunday."""


class Progress(NamedTuple):
    """The progress of a report. `period` counts days or weeks; `begun` is its name, the minute of its start."""

    period: int
    begun: str = ""
    key: str = ""
    version_id: str = ""
    files: tuple[dict[str, Any], ...] = ()
    of: str = ""
    """Identifies the configuration: another one starts a new report."""
    done: bool = False


def note_of(bucket: Bucket, found: Inventory) -> str:
    """Return the name of the index's note with the progress of the last report."""
    return f"inventory:{bucket.id}:{found.id}"


class InventoryDelivery:
    """Writes due reports. `inventory_day_seconds` is the length of a day."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._index = services.index
        self._day = services.settings.inventory_day_seconds
        self._seen = -1
        self._again = False
        self._buckets: list[Bucket] = []
        self._finished: dict[str, tuple[int, Inventory]] = {}
        self._later: dict[str, float] = {}

    def run_again(self) -> None:
        """Make the next runs write a report of every inventory."""
        self._again = True

    async def run_once(self) -> bool:
        """Write the next file of each due report, and return whether one was due."""
        again, self._again = self._again, False
        written = False
        generation = self._index.generation
        if generation != self._seen:
            self._buckets = await self._index.configured_buckets(MARK)
            self._seen = generation
        for bucket in self._buckets:
            for found in inventories_of(bucket).values():
                if found.enabled:
                    written = await self._continue(bucket, found, again=again) or written
        return written

    def _period(self, found: Inventory) -> int:
        day = int(time.time()) // self._day
        return (day - SUNDAY) // 7 if found.frequency == WEEKLY else day

    async def _continue(self, source: Bucket, found: Inventory, *, again: bool) -> bool:
        """Write the next file of a report that is due, or of a done one again; return whether it was due."""
        name, period = note_of(source, found), self._period(found)
        if again:
            self._finished.pop(name, None)
            self._later.pop(name, None)
        if self._finished.get(name) == (period, found) or time.monotonic() < self._later.get(name, 0.0):
            return False
        noted = await self._index.note(name)
        progress = _read(noted) if noted else Progress(-1)
        if progress.done and progress.period >= period and not again:
            self._finished[name] = (period, found)
            return False
        of = xxh3_64_hexdigest(orjson.dumps(list(found)))
        if progress.done or progress.of != of:
            progress = Progress(period, f"{datetime.now(UTC):%Y-%m-%dT%H-%MZ}", of=of)
        try:
            progress = await self._write(source, found, progress)
        except (DomainError, S3Error) as error:
            self._later[name] = time.monotonic() + min(RETRY_SECONDS, self._day)
            logger.warning(
                "inventory %s of bucket %s cannot be written: %s", found.id, source.name, type(error).__name__
            )
            return True
        await self._index.set_note(name, orjson.dumps(progress._asdict()).decode())
        return True

    async def _write(self, source: Bucket, found: Inventory, progress: Progress) -> Progress:
        """Write the next file, or finish after the last."""
        destination = await self._services.bucket(found.bucket)
        if found.account and found.account != account_number(destination.owner_id):
            raise AccessDenied()
        entries, key, version_id = await self._entries(source, found, progress)
        files = progress.files
        if entries or not files:
            rows = [row_values(found, source, entry) for entry in entries]
            data, end, kind = await asyncio.to_thread(render_file, found, rows)
            name = f"{_report_directory(source, found)}/data/{uuid4()}.{end}"
            await self._put(source, destination, name, data, kind, found)
            manifest_entry = {"key": name, "size": len(data), "MD5checksum": _md5(data)}
            files = (*files, manifest_entry)
            crash_point("inventory.written")
        progress = progress._replace(key=key, version_id=version_id, files=files)
        if key:
            return progress
        await self._finish(source, destination, found, progress)
        return Progress(progress.period, progress.begun, of=progress.of, done=True)

    async def _entries(self, source: Bucket, found: Inventory, progress: Progress) -> tuple[list[Entry], str, str]:
        """Return the next entries, and where they end; an empty key after the last."""
        listed: list[ListedVersionEntry] = []
        key, version_id = progress.key, progress.version_id
        while len(listed) < ROWS_PER_FILE:
            if found.versions:
                page = await self._index.list_versions(source.id, found.filter, "", key, version_id, PAGE_ROWS)
                listed += page.entries
                more, key, version_id = page.truncated, page.last_key, page.last_version_id
            else:
                current = await self._index.list_current(source.id, found.filter, "", key, PAGE_ROWS)
                listed += map(_current, current.entries)
                more, key = current.truncated, listed[-1].key if listed else ""
            if not more:
                key = version_id = ""
                break
            await asyncio.sleep(0)
        return await self._looked_up(source, found, listed), key, version_id

    async def _looked_up(self, source: Bucket, found: Inventory, listed: Sequence[ListedVersionEntry]) -> list[Entry]:
        if NEEDS_VERSION.isdisjoint(found.fields):
            return [Entry(one, None) for one in listed]
        entries = []
        for one in listed:
            version = await self._index.version(source.id, one.key, one.version_id or None)
            if version is not None:
                entries.append(Entry(one, version))
        return entries

    async def _finish(self, source: Bucket, destination: Bucket, found: Inventory, progress: Progress) -> None:
        """Write the manifest, its checksum, and the list of files for Hive."""
        started_at = datetime.strptime(progress.begun, "%Y-%m-%dT%H-%MZ").replace(tzinfo=UTC)
        columns = inventory_columns(found)
        schema = ", ".join(columns) if found.format == CSV else _message(columns)
        manifest = orjson.dumps(
            {
                "sourceBucket": source.name,
                "destinationBucket": ARN + destination.name,
                "version": "2016-11-30",
                "creationTimestamp": str(int(started_at.timestamp() * 1000)),
                "fileFormat": found.format,
                "fileSchema": schema,
                "files": list(progress.files),
            },
            option=orjson.OPT_INDENT_2,
        )
        address = _report_directory(source, found)
        links = "\n".join(f"s3://{destination.name}/{one['key']}" for one in progress.files).encode()
        for name, data, kind in (
            (f"{address}/hive/dt={started_at:%Y-%m-%d-%H-%M}/symlink.txt", links, "text/plain"),
            (f"{address}/{progress.begun}/manifest.json", manifest, "application/json"),
            (f"{address}/{progress.begun}/manifest.checksum", _md5(manifest).encode(), "text/plain"),
        ):
            await self._put(source, destination, name, data, kind, found)

    async def _put(
        self, source: Bucket, destination: Bucket, key: str, data: bytes, kind: str, found: Inventory
    ) -> None:
        if not may_deliver(source, destination, key):
            raise AccessDenied()
        method = "AES256" if found.encryption else ""
        await system_put.put_as_owner(self._services, destination, key, data, kind, encryption_method=method)


def may_deliver(source: Bucket, destination: Bucket, key: str) -> bool:
    """Return whether the inventory of a bucket may be written into another one.

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


def _current(one: ListedVersion) -> ListedVersionEntry:
    """Return a current object in the form of a version listing."""
    return ListedVersionEntry(
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


def _report_directory(source: Bucket, found: Inventory) -> str:
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
        f"{kinds[name]} {snake_case(name)}{notes.get(name, '')};"
        if name in kinds
        else f"{'required' if name in ('Bucket', 'Key') else 'optional'} binary {snake_case(name)} (UTF8);"
        for name in columns
    )
    return f"message s3.inventory {{ {' '.join(fields)} }}"
