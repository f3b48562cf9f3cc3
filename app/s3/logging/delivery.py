"""Delivers the access log lines in the index as objects. One worker does so at a time."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sluice_s3.app.access.acl import FULL_CONTROL, LOG_DELIVERY, Grant, Grants
from sluice_s3.app.access.authorize import account_number, authorize_service
from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.logging.rows import Waiting
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.s3.errors import InvalidTargetBucketForLogging, S3Error
from sluice_s3.app.s3.logging.xml import EVENT_TIME, SIMPLE, Logging, logging_of
from sluice_s3.app.s3.objects import system_put

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

logger = logging.getLogger("sluice.jobs")

SERVICE = "logging.s3.amazonaws.com"
ROWS_PER_OBJECT = 500
"""Rows that become one object: each holds a second's lines of a worker."""
KEPT_MS = 86_400_000
"""Milliseconds that undeliverable lines are retained."""
CHECKS_PER_INTERVAL = 10
"""Checks for due logs in one interval."""
MIN_CHECK_SECONDS = 0.5
"""The least seconds between two checks."""
PROBE = "2000-01-01-00-00-00-0000000000000000"
"""A sample of a key after the prefix, to check whether delivery is allowed."""


def may_deliver(source: Bucket, destination: Bucket, prefix: str, key: str = "") -> bool:
    """Return whether the log of a bucket may be written under a prefix of another bucket.

    "Permissions for log delivery", Amazon S3 User Guide. A policy whose resource is the prefix itself applies to all
    keys below it, and a condition on the source's account may name its canonical id: as on Ceph, never on AWS.
    """
    common = {
        "aws:sourcearn": f"arn:aws:s3:::{source.name}",
        "aws:securetransport": "true",
        "aws:requestedregion": destination.region,
        "aws:resourceaccount": account_number(destination.owner_id),
        "aws:currenttime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(int(time.time())),
    }
    return any(
        authorize_service(
            SERVICE, "s3:PutObject", destination, name, {**common, "aws:sourceaccount": account}, LOG_DELIVERY
        )
        for account in (account_number(source.owner_id), source.owner_id)
        for name in (key or prefix + PROBE, prefix)
    )


def key_of(source: Bucket, config: Logging, now: datetime, day: str) -> str:
    """Return the key of a new log object; `day` is that of its lines, `YYYY-MM-DD`.

    "Log object key format", "Logging requests with server access logging", Amazon S3 User Guide.
    """
    unique = secrets.token_hex(8).upper()
    if config.format in ("", SIMPLE):
        return f"{config.prefix}{now:%Y-%m-%d-%H-%M-%S}-{unique}"
    moment = f"{day}-00-00-00" if config.format == EVENT_TIME else f"{now:%Y-%m-%d-%H-%M-%S}"
    directory = f"{account_number(source.owner_id)}/{source.region}/{source.name}"
    return f"{config.prefix}{directory}/{moment[:10].replace('-', '/')}/{moment}-{unique}"


def group_by_day(texts: Iterable[str], config: Logging) -> dict[str, str]:
    """Return the lines of each day where the key contains the day; else all together.

    A line without a date belongs to the day of the line before it, or to today.
    """
    if config.format != EVENT_TIME:
        return {"": "".join(texts)}
    found: dict[str, list[str]] = {}
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    for line in "".join(texts).removesuffix("\n").split("\n"):
        with suppress(ValueError):
            day = datetime.strptime(line.partition("[")[2][:11], "%d/%b/%Y").strftime("%Y-%m-%d")
        found.setdefault(day, []).append(line + "\n")
    return {day: "".join(lines) for day, lines in found.items()}


class LogDelivery:
    """Delivers each bucket's lines once the oldest is as old as the setting `log_interval`."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._index = services.index
        self._interval = services.settings.log_interval
        self._next = 0.0
        self._again = False
        self._failing: set[int] = set()

    def run_again(self) -> None:
        """Make the next run deliver all lines that wait."""
        self._next, self._again = 0.0, True

    async def run_once(self) -> bool:
        """Deliver what is due, and return whether anything was."""
        if time.monotonic() < self._next:
            return False
        again, self._again = self._again, False
        delivered = False
        self._next = time.monotonic() + max(MIN_CHECK_SECONDS, min(self._interval / CHECKS_PER_INTERVAL, 10.0))
        due = now_ms() - (0 if again else int(self._interval * 1000))
        for waiting in await self._index.waiting_logs():
            if waiting.oldest <= due:
                delivered = True
                try:
                    await self._deliver(waiting)
                except Exception as error:  # other buckets' logs must not wait for it
                    self._report(waiting, error)
        return delivered

    async def _deliver(self, waiting: Waiting) -> None:
        found = await self._index.log_lines(waiting.bucket_id, ROWS_PER_OBJECT)
        try:
            await self._write(waiting, [one.lines for one in found])
        except Exception as error:
            self._report(waiting, error)
            found = [one for one in found if one.at < now_ms() - KEPT_MS]
        else:
            self._failing.discard(waiting.bucket_id)
        if found:
            await self._index.forget_log_lines([one.id for one in found])

    def _report(self, waiting: Waiting, error: Exception) -> None:
        """Log once why a bucket's log is not delivered, until it is again."""
        if waiting.bucket_id not in self._failing:
            self._failing.add(waiting.bucket_id)
            unforeseen = None if isinstance(error, DomainError | S3Error) else error
            why = type(error).__name__
            logger.warning(
                "the access log of bucket %s cannot be delivered: %s", waiting.bucket, why, exc_info=unforeseen
            )

    async def _write(self, waiting: Waiting, texts: list[str]) -> None:
        """Write lines to their destination; drop them if the bucket no longer has a log."""
        source = await self._index.bucket(waiting.bucket)
        config = None if source is None or source.id != waiting.bucket_id else logging_of(source)
        if source is None or config is None or not texts:
            return
        destination = await self._services.bucket(config.bucket)
        for day, lines in group_by_day(texts, config).items():
            key = key_of(source, config, datetime.now(UTC), day)
            check(source, destination, config.prefix, key)
            await system_put.put_as_owner(
                self._services, destination, key, lines.encode(), "text/plain", grants_of(destination, config)
            )
        crash_point("logs.written")


def check(source: Bucket, destination: Bucket, prefix: str, key: str = "") -> None:
    """Raise InvalidTargetBucketForLogging for a destination that is unsuitable or refuses delivery."""
    if source.owner_id != destination.owner_id:
        raise InvalidTargetBucketForLogging(
            "The owner for the bucket to be logged and the target bucket must be the same.",
            TargetBucket=destination.name,
        )
    if not may_deliver(source, destination, prefix, key):
        raise InvalidTargetBucketForLogging(
            "You must give the log-delivery group WRITE and READ_ACP permissions to the target bucket",
            TargetBucket=destination.name,
        )


def grants_of(destination: Bucket, config: Logging) -> Grants | None:
    """Return the ACL of a log object."""
    if not config.grants or not access_of(destination).has_acls:
        return None
    return (Grant(destination.owner_id, FULL_CONTROL), *(Grant(*one) for one in config.grants))
