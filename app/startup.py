"""What must be done once before workers start: directories, identity, migrations, first account, default buckets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from app.access.bucket_access import ENFORCED, initial_settings
from app.access.credentials import Credentials, WeakCredentials, ensure_root, root_credentials
from app.encryption.master import is_given, read_master
from app.encryption.ring import RingError
from app.errors import (
    AccountExists,
    BucketAlreadyExists,
    BucketAlreadyOwnedByYou,
    DomainError,
    StoreUnavailable,
    TooManyBuckets,
)
from app.index import Index, open_index
from app.index.leased import under
from app.index.schema import DEFAULT
from app.index.transactions.gateways import LIVE
from app.jobs.sweep import sweep
from app.s3.target import valid_bucket_name
from app.settings import Settings
from app.store.buckets import create_bucket
from app.store.driver import make_stores
from app.store.keyring import make_ring
from app.store.store import Store
from storage_drivers.errors import DriverError, StoreGone, StoreReplaced, StoreSilent, StoreUnfit
from storage_drivers.identity import Identity
from storage_drivers.looking import check_identity

logger = logging.getLogger("sluice.store")

Known = Mapping[str, tuple[str, int]]
"""The stores that the index knows by their names: UUID and generation."""


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
        await _start_all(store, known, settings.workers, stack)
        try:
            await make_ring(index, partial(read_master, settings), given=is_given(settings))
        except RingError as error:
            raise CannotStart(str(error)) from None
        credentials = root_credentials(settings)
        try:
            root_id = await ensure_root(index, await _root_of(store), credentials)
        except AccountExists:
            raise CannotStart("the root access key belongs to another account (see `sluice user list`)") from None
        await _make_buckets(store, settings, buckets, root_id)
        try:
            await sweep(store, index.writer_is_gone)
        except StoreUnavailable as error:
            logger.warning("sweep: %s, which the workers go on with", type(error).__name__)
        return credentials


async def _start_all(store: Store, known: Known, workers: int, stack: AsyncExitStack) -> None:
    """Start all stores; one must be in service, or hang, which no other start would change. Raises CannotStart."""
    stores: list[Store] = []
    for one in store.all.values():
        stack.push_async_callback(one.close)
        if not one.driver.capabilities.one_process:
            stores.append(one)
        elif workers > 1:
            raise CannotStart(f"store {one.name}: it is of one process, which wants --workers 1")
        elif one.name in store.classes.values():
            raise CannotStart(f"store {one.name}: it ends with its process, so that no storage class can have it")
        elif one.name in known:
            raise CannotStart(f"store {one.name}: what was in it ended with its process, but not the index of it")
    # together: each that hangs takes as long as it may
    for error in await asyncio.gather(*(_start_watched(one, known, stack) for one in stores), return_exceptions=True):
        if error is not None:
            raise error
    refusals = [one.breaker.refused for one in store.all.values() if one.breaker is not None]
    if refusals and not any(error is None or _is_silent(error) for error in refusals):
        raise CannotStart(_of(store, refusals[0]))


async def _start_watched(store: Store, known: Known, stack: AsyncExitStack) -> None:
    """Start a store, which may go out of service from then on; one that the index knows may be so already.

    Raises CannotStart: for a mount that cannot keep its promise, for another store, for a new one that cannot be made.
    """
    breaker = store.breaker
    assert breaker is not None
    try:
        await breaker.start(known.get(store.name))
        refused = breaker.refused
        if refused is not None and not _may_pass(refused):
            raise refused
    except DriverError as error:
        raise CannotStart(_of(store, error, known)) from error
    stack.push_async_callback(_ended, asyncio.create_task(breaker.run(_nobody)))
    if refused is None:
        await _bind(store, known)
        if store.driver.probe is not None:
            logger.info("store %s: %s", store.name, store.driver.probe.line)


def _may_pass(error: DriverError) -> bool:
    """Whether a store that said so may be good again by itself; else somebody must do something."""
    if isinstance(error, StoreUnfit):
        return error.kind in ("no-answer", "error")
    if isinstance(error, StoreGone):
        return not isinstance(error, StoreReplaced)
    return _is_silent(error) or isinstance(error.__cause__, OSError)


def _is_silent(error: DriverError) -> bool:
    return isinstance(error, StoreSilent) or (isinstance(error, StoreUnfit) and error.kind == "no-answer")


def _of(store: Store, what: DriverError | str | None, known: Known | None = None) -> str:
    """What is wrong with a store, for the operator."""
    named = "" if store.name == DEFAULT else f"store {store.name}: "
    if isinstance(what, StoreReplaced) and known is not None:
        uuid, generation = known[store.name]
        return f"{named}the index is of store {uuid} generation {generation}, but {what}"
    return f"{named}{what}"


def _nobody(_name: str, _condition: str, *_counts: int) -> None:
    """Told how a store is, before there are workers who ask."""


async def _ended(watching: asyncio.Task[None]) -> None:
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


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


async def start(store: Store, known: Known) -> None:
    """Start a store, and bind the index to it if that knows none of its name. Raises CannotStart."""
    try:
        await store.start()
    except DriverError as error:
        raise CannotStart(_of(store, error)) from error
    await _bind(store, known)


async def _bind(store: Store, known: Known) -> None:
    found = store.driver.identity
    assert found is not None
    try:
        if store.name in known:
            check_identity(found, Identity(*known[store.name]))
            return
        empty = await store.driver.empty()
    except DriverError as error:
        raise CannotStart(_of(store, error, known)) from error
    # a crash right after the store was made leaves one without an index, too
    if not empty:
        raise CannotStart(_of(store, "there is data here but no index of it: `sluice rebuild` makes it anew"))
    await store.index.set_identity(*found, store.name)


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
        known = await index.identities()
        kept = (known.get(DEFAULT) or known.get(store.name) or store.driver.identity or ("",))[0]
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
    plain_files = store.tree is not None
    made = initial_settings(settings, ENFORCED if plain_files else None, plain_files=plain_files)
    for name in names:
        try:
            place = (name, owner_id, settings.region, settings.max_buckets)
            await create_bucket(store, *place, made, with_files=True)
        except BucketAlreadyOwnedByYou:
            pass
        except BucketAlreadyExists:
            raise CannotStart(f"the default bucket {name!r} belongs to another account") from None
        except TooManyBuckets:
            raise CannotStart(f"the default bucket {name!r} would be one more than SLUICE_MAX_BUCKETS") from None
