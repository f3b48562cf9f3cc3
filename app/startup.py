"""What must be done once before workers start: directories, identity, migrations, first account, default buckets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.access.credentials import Credentials, WeakCredentials, ensure_root, root_credentials
from app.errors import AccountExists, BucketAlreadyExists, BucketAlreadyOwnedByYou, DomainError
from app.index import Index, open_index
from app.jobs.sweep import sweep
from app.s3.target import valid_bucket_name
from app.settings import Settings
from app.store.driver import make_driver
from app.store.store import Store
from storage_drivers.errors import DriverError
from storage_drivers.local import LocalDriver

logger = logging.getLogger("sluice.store")


class CannotStart(Exception):
    """The gateway cannot run on this directory; the message says why, for the operator."""


def prepare(settings: Settings) -> Credentials:
    """Make or check everything that workers need, and sweep what the last run left. Raises CannotStart."""
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (settings.run_dir / "writers").mkdir(mode=0o700, exist_ok=True)
        return asyncio.run(_prepare(settings))
    except (WeakCredentials, DriverError) as error:
        raise CannotStart(str(error)) from error
    except DomainError as error:
        raise CannotStart(f"the index cannot be used: {type(error).__name__} {error}") from error
    except OSError as error:
        raise CannotStart(f"{error.strerror}: {error.filename or settings.data}") from error


async def _prepare(settings: Settings) -> Credentials:
    index = open_index(settings)
    await index.start(migrate=True)
    driver = make_driver(settings, create=await index.identity() is None)
    try:
        await driver.start()
        await match(index, driver)
        assert driver.identity is not None
        assert driver.probe is not None
        logger.info("store default: %s", driver.probe.line)
        credentials = root_credentials(settings)
        try:
            root_id = await ensure_root(index, driver.identity.store, credentials)
        except AccountExists:
            raise CannotStart("the root access key belongs to another account (see `sluice user list`)") from None
        await _default_buckets(index, settings, root_id)
        await sweep(Store(index, driver), index.writer_is_gone)
        return credentials
    finally:
        await driver.close()
        await index.close()


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    """The store of these settings, for a command that may run beside a server. Raises CannotStart."""
    if not settings.index_path.exists():
        raise CannotStart("there is no index here")
    index = open_index(settings, writer=False)
    driver = make_driver(settings)
    await index.start()
    try:
        await driver.start()
        await match(index, driver)
        yield Store(index, driver)
    finally:
        await driver.close()
        await index.close()


async def match(index: Index, driver: LocalDriver) -> None:
    """The store and the index must be of each other: the same UUID and generation."""
    assert driver.identity is not None
    known = await index.identity()
    if known is None:
        # a crash right after the store was made leaves one without an index, too
        if not await asyncio.to_thread(lambda: driver.contents().empty):
            raise CannotStart("there is data here but no index of it: `sluice rebuild` makes it anew")
        await index.set_identity(*driver.identity)
    elif known != tuple(driver.identity):
        raise CannotStart(
            f"the index is of store {known[0]} generation {known[1]}, the directory of store "
            f"{driver.identity.store} generation {driver.identity.generation}"
        )


async def _default_buckets(index: Index, settings: Settings, owner_id: str) -> None:
    for name in filter(None, map(str.strip, settings.default_buckets.split(","))):
        if not valid_bucket_name(name):
            raise CannotStart(f"{name!r} in SLUICE_DEFAULT_BUCKETS is no bucket name")
        try:
            await index.create_bucket(name, owner_id, settings.region, settings.max_buckets)
        except BucketAlreadyOwnedByYou:
            pass
        except BucketAlreadyExists:
            raise CannotStart(f"the default bucket {name!r} belongs to another account") from None
