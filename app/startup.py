"""What must be done once before workers start: directories, identity, migrations, first account, default buckets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from app.access.bucket_access import ENFORCED, initial_settings
from app.access.credentials import Credentials, WeakCredentials, ensure_root, root_credentials
from app.errors import AccountExists, BucketAlreadyExists, BucketAlreadyOwnedByYou, DomainError, TooManyBuckets
from app.index import Index, open_index
from app.index.leased import under
from app.index.schema import DEFAULT
from app.index.transactions.gateways import LIVE
from app.jobs.sweep import sweep
from app.s3.target import valid_bucket_name
from app.settings import Settings
from app.store.buckets import create_bucket
from app.store.driver import make_stores
from app.store.store import Store
from storage_drivers.errors import DriverError

logger = logging.getLogger("sluice.store")


class CannotStart(Exception):
    """The gateway cannot run on this directory; the message says why, for the operator."""


def prepare(settings: Settings) -> Credentials:
    """Make or check everything that workers need, and sweep what the last run left. Raises CannotStart.

    Several gateways of one index may do so at the same time.
    """
    buckets = _default_buckets(settings)  # before anything is made
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (settings.run_dir / "writers").mkdir(mode=0o700, exist_ok=True)
        return asyncio.run(_prepare(settings, buckets))
    except (WeakCredentials, DriverError) as error:
        raise CannotStart(str(error)) from error
    except DomainError as error:
        raise CannotStart(f"the index cannot be used: {type(error).__name__} {error}") from error
    except OSError as error:
        raise CannotStart(f"{error.strerror}: {error.filename or settings.home}") from error


async def _prepare(settings: Settings, buckets: list[str]) -> Credentials:
    async with AsyncExitStack() as stack:
        index = open_index(settings)
        await index.start(migrate=True)
        stack.push_async_callback(index.close)
        await stack.enter_async_context(_alone(index))
        known = await index.identities()
        await refuse_missing(index, settings)
        store = make_stores(index, settings, known)
        for one in store.all.values():
            stack.push_async_callback(one.close)
            if one.driver.capabilities.one_process:
                if settings.workers > 1:
                    raise CannotStart(f"store {one.name}: it is of one process, which wants --workers 1")
                if one.name in known:
                    raise CannotStart(
                        f"store {one.name}: what was in it ended with its process, but not the index of it"
                    )
                continue
            await start(one, known)
            if one.driver.probe is not None:
                logger.info("store %s: %s", one.name, one.driver.probe.line)
        credentials = root_credentials(settings)
        try:
            root_id = await ensure_root(index, await _root_of(store), credentials)
        except AccountExists:
            raise CannotStart("the root access key belongs to another account (see `sluice user list`)") from None
        await _make_buckets(store, settings, buckets, root_id)
        await sweep(store, index.writer_is_gone)
        return credentials


@asynccontextmanager
async def _alone(index: Index) -> AsyncIterator[None]:
    """Several gateways that start together make or check what there is one after the other."""
    if not index.many_hosts:
        yield
        return
    told = False
    while (lease := await index.take_lease("start")) is None:
        if not told:
            logger.info("another gateway starts just now: waiting for it")
            told = True
        for writer in await index.writers():
            if writer.state == LIVE and index.writer_is_gone(writer):
                await index.declare_dead(writer.incarnation)
        await asyncio.sleep(0.1)
    with under(lease):
        yield
    await index.leave_lease(lease)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    """The default store of these settings, for a command that may run beside a server. Raises CannotStart."""
    if settings.index_is_missing:
        raise CannotStart("there is no index here")
    async with AsyncExitStack() as stack:
        index = open_index(settings, writer=False)
        await index.start()
        stack.push_async_callback(index.close)
        await refuse_missing(index, settings)
        store = make_stores(index, settings)
        known = await index.identities()
        for one in store.all.values():
            stack.push_async_callback(one.close)
            if one.driver.capabilities.one_process:
                raise CannotStart(f"store {one.name}: nothing can look at it but its server")
            await start(one, known)
        yield store


async def start(store: Store, known: Mapping[str, tuple[str, int]]) -> None:
    """Start a store, and bind the index to it if that knows none of its name. Raises CannotStart."""
    named = "" if store.name == DEFAULT else f"store {store.name}: "
    try:
        await store.start()
        empty = await store.driver.empty() if store.name not in known else False
    except DriverError as error:
        raise CannotStart(f"{named}{error}") from error
    found = store.driver.identity
    assert found is not None
    if store.name not in known:
        # a crash right after the store was made leaves one without an index, too
        if not empty:
            raise CannotStart(f"{named}there is data here but no index of it: `sluice rebuild` makes it anew")
        await store.index.set_identity(*found, store.name)
    elif known[store.name] != tuple(found):
        raise CannotStart(
            f"{named}the index is of store {known[store.name][0]} generation {known[store.name][1]}, the directory of "
            f"store {found.store} generation {found.generation}"
        )


async def refuse_missing(index: Index, settings: Settings) -> None:
    """Raise CannotStart when a store that holds buckets is not among the settings."""
    used = await index.stores_in_use()
    for name in sorted(used.keys() - settings.named_stores.keys()):
        raise CannotStart(f"the index has {used[name]} buckets on the store {name!r}, which the settings do not name")
    known = await index.identities()
    for name in sorted(known.keys() - settings.named_stores.keys()):
        if await index.any_on(name):
            raise CannotStart(f"the index has objects on the store {name!r}, which the settings do not name")


async def _root_of(store: Store) -> str:
    """The UUID that the first account's id is made of: it stays the same when stores come and go."""
    index = store.index
    kept = await index.note(ROOT)
    if not kept:
        kept = (await index.identities()).get(DEFAULT, (store.driver.identity or ("",))[:1])[0]
        await index.set_note(ROOT, kept)
    return kept


ROOT = "root"
"""Note of the index: what the first account's id is made of."""


def _default_buckets(settings: Settings) -> list[str]:
    """The names of SLUICE_DEFAULT_BUCKETS, once each. Raises CannotStart for one that no bucket can have."""
    names = list(dict.fromkeys(filter(None, map(str.strip, settings.default_buckets.split(",")))))
    for name in names:
        if not valid_bucket_name(name):
            raise CannotStart(f"{name!r} in SLUICE_DEFAULT_BUCKETS is no bucket name")
    return names


async def _make_buckets(store: Store, settings: Settings, names: list[str], owner_id: str) -> None:
    """Make those that are missing; another gateway may make them at the same moment."""
    made = initial_settings(settings, None if store.tree is None else ENFORCED)
    for name in names:
        try:
            await create_bucket(store, name, owner_id, settings.region, settings.max_buckets, made)
        except BucketAlreadyOwnedByYou:
            pass
        except BucketAlreadyExists:
            raise CannotStart(f"the default bucket {name!r} belongs to another account") from None
        except TooManyBuckets:
            raise CannotStart(f"the default bucket {name!r} would be one more than SLUICE_MAX_BUCKETS") from None
