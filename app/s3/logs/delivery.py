"""Makes objects of the lines of access logs that wait in the index. One worker does so at a time."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.access.acl import FULL_CONTROL, LOG_DELIVERY, Grant, Grants
from app.access.authorize import account_number, authorize_service
from app.access.bucket_access import access_of
from app.crash import crash_point
from app.errors import DomainError
from app.index.deliveries import Waiting
from app.index.rows import Bucket
from app.index.steps import now_ms
from app.s3 import internal
from app.s3.errors import S3Error
from app.s3.logs.configuration import EVENT_TIME, SIMPLE, Logging, logging_of
from app.s3.logs.errors import InvalidTargetBucketForLogging

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

logger = logging.getLogger("sluice.jobs")

SERVICE = "logging.s3.amazonaws.com"
BATCH = 500
"""Rows of the table that are made one object: each has what a worker collected in a second."""
KEPT_MS = 86_400_000
"""How long lines are kept that cannot be delivered."""
LOOKS = 10
"""So many times in an interval it is looked what is due."""
SOON = 0.5
"""Seconds between two looks at least."""
PROBE = "2000-01-01-00-00-00-0000000000000000"
"""Stands for what comes behind the prefix, when it is asked whether a log may be delivered."""


def may_deliver(source: Bucket, destination: Bucket, prefix: str, key: str = "") -> bool:
    """Whether the log of a bucket may be written into another one, under a prefix.

    "Permissions for log delivery", Amazon S3 User Guide. A policy whose resource is the prefix itself counts for all
    that is under it, and a condition on the source's account may name its canonical id: so on Ceph, never on AWS.
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
    """The key of a new object of a log; `day` is that of its lines, `YYYY-MM-DD`.

    "Log object key format", "Logging requests with server access logging", Amazon S3 User Guide.
    """
    unique = secrets.token_hex(8).upper()
    if config.format in ("", SIMPLE):
        return f"{config.prefix}{now:%Y-%m-%d-%H-%M-%S}-{unique}"
    moment = f"{day}-00-00-00" if config.format == EVENT_TIME else f"{now:%Y-%m-%d-%H-%M-%S}"
    place = f"{account_number(source.owner_id)}/{source.region}/{source.name}"
    return f"{config.prefix}{place}/{moment[:10].replace('-', '/')}/{moment}-{unique}"


def by_day(texts: Iterable[str], config: Logging) -> dict[str, str]:
    """The lines of each day, where the key tells the day; else all of them.

    A line that tells none goes with the one before it, or is of today.
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

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._index = gateway.index
        self._interval = gateway.settings.log_interval
        self._next = 0.0
        self._failing: set[int] = set()

    async def run_once(self) -> None:
        """Deliver what is due."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + max(SOON, min(self._interval / LOOKS, 10.0))
        due = now_ms() - int(self._interval * 1000)
        for waiting in await self._index.waiting_logs():
            if waiting.oldest <= due:
                try:
                    await self._deliver(waiting)
                except Exception as error:  # the others' logs do not wait for it
                    self._tell(waiting, error)

    async def _deliver(self, waiting: Waiting) -> None:
        found = await self._index.log_lines(waiting.bucket_id, BATCH)
        try:
            await self._write(waiting, [one.lines for one in found])
        except Exception as error:
            self._tell(waiting, error)
            found = [one for one in found if one.at < now_ms() - KEPT_MS]
        else:
            self._failing.discard(waiting.bucket_id)
        if found:
            await self._index.forget_log_lines([one.id for one in found])

    def _tell(self, waiting: Waiting, error: Exception) -> None:
        """Say once why a bucket's log is not delivered, until it is."""
        if waiting.bucket_id not in self._failing:
            self._failing.add(waiting.bucket_id)
            unforeseen = None if isinstance(error, DomainError | S3Error) else error
            why = type(error).__name__
            logger.warning(
                "the access log of bucket %s cannot be delivered: %s", waiting.bucket, why, exc_info=unforeseen
            )

    async def _write(self, waiting: Waiting, texts: list[str]) -> None:
        """Write lines where they belong; nowhere if the bucket has no log any more."""
        source = await self._index.bucket(waiting.bucket)
        config = None if source is None or source.id != waiting.bucket_id else logging_of(source)
        if source is None or config is None or not texts:
            return
        destination = await self._gateway.bucket(config.bucket)
        for day, lines in by_day(texts, config).items():
            key = key_of(source, config, datetime.now(UTC), day)
            check(source, destination, config.prefix, key)
            await internal.put(
                self._gateway, destination, key, lines.encode(), "text/plain", grants_of(destination, config)
            )
        crash_point("logs.written")


def check(source: Bucket, destination: Bucket, prefix: str, key: str = "") -> None:
    """Raises InvalidTargetBucketForLogging where a log must not go, or may not."""
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
    """The ACL of an object of a log."""
    if not config.grants or not access_of(destination).has_acls:
        return None
    return (Grant(destination.owner_id, FULL_CONTROL), *(Grant(*one) for one in config.grants))
