"""The index as commands open it, and the server beside them."""

from __future__ import annotations

import asyncio
import os
import pwd
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from sluice_s3.app.cli.common import fail
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.identity import NAME as STORE_IDENTITY

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.index.engine.audit_trail import AuditTrail

T = TypeVar("T")
GROUPS = frozenset({"bucket", "config", "index", "key", "user"})
"""Commands with commands of their own."""


def run_with_index(
    settings: Settings, call: Callable[[Index], Awaitable[T]], expected: tuple[type[DomainError], ...] = ()
) -> T:
    """Open the index, return what `call` returns, and close it.

    Passes `expected` errors on. Exits with 1 when there is no index, or it cannot be used.
    """

    async def run() -> T:
        async with opened_index(settings) as index:
            return await call(index)

    try:
        return asyncio.run(run())
    except expected:
        raise
    except (DomainError, OSError) as error:
        fail(f"the index cannot be used: {describe(error)}")


def _trail() -> AuditTrail:
    """Return the trail of this command, for what it changes: its name, and the user who runs it."""
    from sluice_s3.app.index.engine.audit_trail import AuditTrail

    # a group of commands is followed by one; no other argument is printed, it may be a secret
    words = sys.argv[1:3] if sys.argv[1:2] and sys.argv[1] in GROUPS else sys.argv[1:2]
    command = " ".join(word for word in words if word.replace("-", "").isalpha()) or "sluice"
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return AuditTrail("command", command, principal=f"command:{user}")


@asynccontextmanager
async def opened_index(settings: Settings) -> AsyncIterator[Index]:
    """Open the index. Exits with 1 when there is none: a command in a wrong directory must not make one.

    What is changed within is in the audit log.
    """
    from sluice_s3.app.index import open_index
    from sluice_s3.app.index.engine.audit_trail import audited
    from sluice_s3.app.private_files import make_directory

    require_index(settings)
    index = open_index(settings, writer=False)
    make_directory(settings.run_dir)
    await index.start()
    try:
        with audited(_trail()):
            yield index
    finally:
        await index.close()


def require_index(settings: Settings) -> None:
    """Exit with 1 when there is no index, as far as visible without a connection."""
    if settings.index_is_missing:
        directories = [store.directory for store in settings.named_stores.values() if store.directory is not None]
        if any((directory / STORE_IDENTITY).exists() for directory in directories):
            cure = "the data is there: if the index is lost, `sluice rebuild` makes one from it"
        else:
            cure = "`sluice serve` makes one"
        fail(f"there is no index at {settings.index_path} (--data and --index say where; {cure})")


async def is_served(index: Index, settings: Settings) -> bool:
    """Return whether a server holds its lock.

    With several gateways, return whether one is not known to be dead.
    """
    from sluice_s3.app.index.cluster.transactions import LIVE

    if index.many_hosts:
        return any(writer.state == LIVE for writer in await index.writers())
    return runs_here(settings)


def runs_here(settings: Settings) -> bool:
    """Return whether a server on this machine holds the lock of the runtime directory. Raises OSError."""
    from sluice_s3.app.server.processes.instance_lock import acquire

    lock = acquire(settings.run_dir)
    if lock is None:
        return True
    lock.close()
    return False


def find_gateway(settings: Settings, option: str) -> str:
    """Return the URL that the last server here listened on; exit with 2, and name `option`, if there was none."""
    from sluice_s3.app.server.processes.listen import S3, read_addresses

    try:
        return read_addresses(settings.run_dir)[S3]
    except (OSError, KeyError):
        fail(f"no server has run here yet: give {option}", 2)
