"""What may need attention in the server itself: each check returns findings, and touches no store."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sluice_s3.app.admin.notifications import targets
from sluice_s3.app.admin.overview.models import Finding, Severity
from sluice_s3.app.admin.people.idle_keys import MAX_KEYS, OLD_DAYS, UNUSED_DAYS, keys_needing_attention
from sluice_s3.app.encryption.certificate import certificate_end
from sluice_s3.app.index import Index
from sluice_s3.app.interpreter import describe_interpreter
from sluice_s3.app.settings import Settings

DAY_SECONDS = 86_400
CERTIFICATE_DAYS = 21
"""Days before a certificate's end at which it needs attention."""
LAST_CERTIFICATE_DAYS = 3
LARGE_LOG_BYTES = 512 << 20
"""Bytes of SQLite's log that mean that checkpoints fail: they begin at 64 MiB."""
LATE_MESSAGES_SECONDS = 300.0
DEATHS_MS = DAY_SECONDS * 1000
LEAST_INDEX_SHARE = 0.05
"""Free share of the index's file system below which it needs attention."""


class Death(Protocol):
    """A process that ended unasked."""

    @property
    def at(self) -> int:
        """Milliseconds since the epoch."""
        ...

    @property
    def process(self) -> str:
        """Its role."""
        ...

    @property
    def reason(self) -> str:
        """What ended it."""
        ...


class Server(Protocol):
    """What the processes of the server say."""

    def read_deaths(self) -> Sequence[Death]:
        """Return those that died lately. Raises OSError."""
        ...


@dataclass(frozen=True)
class Sources:
    """What the checks read."""

    index: Index
    settings: Settings
    server: Server


async def check_certificate(sources: Sources) -> list[Finding]:
    """Find a TLS certificate that ends soon."""
    path = sources.settings.tls_cert
    if path is None:
        return []
    try:
        end = await asyncio.to_thread(certificate_end, path)
    except (OSError, ValueError):
        advice = "The file of `SLUICE_TLS_CERT` cannot be read any more: the next start would fail."
        return [Finding(kind="certificate", severity="error", title="The TLS certificate is unreadable", advice=advice)]
    left = (end - time.time()) / DAY_SECONDS
    if left > CERTIFICATE_DAYS:
        return []
    day = datetime.fromtimestamp(end, UTC).strftime("%-d %B %Y, %H:%M UTC")
    title = f"The TLS certificate {'ended' if left < 0 else 'ends'} on {day}"
    severity: Severity = "error" if left < LAST_CERTIFICATE_DAYS else "warning"
    advice = "Replace the file of the certificate, then restart the processes one by one."
    return [
        Finding(
            kind="certificate", severity=severity, title=title, advice=advice, command="kill -HUP PID-OF-SLUICE-SERVE"
        )
    ]


async def check_interpreter(sources: Sources) -> list[Finding]:
    """Find a Python without profile-guided optimisation."""
    found = describe_interpreter()
    if found.optimised:
        return []
    title = f"Python {found.version} was built without optimisation by a profile"
    advice = "A request takes about a tenth more CPU. Run Sluice with a distribution's Python, or with its image."
    return [Finding(kind="interpreter", severity="notice", title=title, advice=advice)]


async def check_log(sources: Sources) -> list[Finding]:
    """Find a large log of an SQLite index, and little space for it."""
    settings = sources.settings
    if settings.index_url is not None:
        return []
    path = settings.index_path
    size, share = await asyncio.to_thread(_measure_log, str(path))
    found = []
    if size >= LARGE_LOG_BYTES:
        title = f"The log of the index has grown to {size >> 20} MiB"
        advice = "A long read keeps it from being copied back: a backup, a rebuild or another program on the file."
        found.append(
            Finding(
                kind="index-log",
                severity="warning",
                title=title,
                advice=advice,
                command="sluice status",
                link="operations",
            )
        )
    if share < LEAST_INDEX_SHARE:
        title = f"The index's file system has {share:.0%} of its space left"
        advice = "When it is full, nothing can be written or deleted any more. Make space there."
        found.append(Finding(kind="index-space", severity="error", title=title, advice=advice, command="df -h"))
    return found


def _measure_log(index: str) -> tuple[int, float]:
    """Return the bytes of the log, and the free share of its file system."""
    try:
        size = os.stat(f"{index}-wal").st_size
    except FileNotFoundError:
        size = 0
    space = os.statvfs(os.path.dirname(index))
    return size, space.f_bavail / space.f_blocks if space.f_blocks else 1.0


async def check_deaths(sources: Sources) -> list[Finding]:
    """Find processes that died in the last day."""
    since = time.time() * 1000 - DEATHS_MS
    deaths = [one for one in await asyncio.to_thread(sources.server.read_deaths) if one.at >= since]
    if not deaths:
        return []
    last = deaths[-1]
    often = f"{len(deaths)} processes" if len(deaths) > 1 else "A process"
    title = f"{often} of the gateway died in the last 24 hours"
    advice = (
        f"The last one was {last.process} ({last.reason}); another took its place. The log before it says why; signal "
        "9 without a line there often means that memory ran out."
    )
    command = "journalctl -u sluice --since=-1d"
    return [
        Finding(
            kind="deaths",
            severity="warning",
            subject=last.process,
            title=title,
            advice=advice,
            command=command,
            since=last.at,
        )
    ]


async def check_notifications(sources: Sources) -> list[Finding]:
    """Find targets that take no messages."""
    found = []
    for one in await targets(sources.index, sources.settings):
        waiting = "1 message waits" if one.backlog == 1 else f"{one.backlog} messages wait"
        if one.kind is None and one.backlog:
            title = f"{waiting} for {one.name}, which no setting names"
            advice = "Add the target to `SLUICE_NOTIFY_TARGETS` again, or take it out of the buckets' notifications."
        elif one.error is not None:
            title = f"{one.name} does not take notifications: {waiting}"
            # what it answered may name hosts: who may see the overview may not see targets
            advice = "They are sent again until they are too old. A bucket's notifications show the last error."
        elif one.oldest_seconds > LATE_MESSAGES_SECONDS:
            title = f"Notifications to {one.name} are {one.oldest_seconds / 60:.0f} minutes late"
            advice = "It answers too slowly for the changes that there are."
        else:
            continue
        found.append(
            Finding(
                kind="notifications",
                severity="warning",
                subject=one.name,
                title=title,
                advice=advice,
                since=one.failing_since,
            )
        )
    return found


async def check_keys(sources: Sources) -> list[Finding]:
    """Find access keys that nobody uses, or that are old. It names none: the room of people does."""
    keys = await keys_needing_attention(sources.index)
    old = sum(key.reason == "old" for key in keys)
    found = []
    for count, state, advice in (
        (len(keys) - old, f"not used for {UNUSED_DAYS} days", "Disable them, and delete them if nobody misses them."),
        (
            old,
            f"older than {OLD_DAYS} days",
            "Rotate each: make a new key, move its users over, delete the old one.",
        ),
    ):
        if count:
            number = f"{'At least ' if len(keys) == MAX_KEYS else ''}{count} access key{'' if count == 1 else 's'}"
            title = f"{number} {'is' if count == 1 else 'are'} {state}"
            found.append(Finding(kind="keys", severity="notice", title=title, advice=advice, link="people"))
    return found
