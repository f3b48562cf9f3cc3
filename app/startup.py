"""Preparations before workers start: directories, identity, migrations, first account, default buckets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from sluice_s3.app.access.root_credentials import Credentials, WeakCredentials, ensure_root, root_credentials
from sluice_s3.app.default_buckets import BucketRefused, WantedBucket, make_buckets, parse_buckets
from sluice_s3.app.encryption.keyring import RingError
from sluice_s3.app.errors import (
    AccountExists,
    DomainError,
    IndexBehind,
    IndexForeign,
    StoreUnavailable,
    describe,
)
from sluice_s3.app.index import Index, open_index
from sluice_s3.app.index.cluster.transactions import LIVE
from sluice_s3.app.index.engine.fencing import with_lease
from sluice_s3.app.index.journals.rows import ROOT_NOTE
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.jobs.journals.health import clear_wrong_index
from sluice_s3.app.jobs.journals.position import require_current
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.private_files import describe_failure, make_directories, make_directory
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.encryption.keyring import make_ring
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_stores
from sluice_s3.storage_drivers.errors import DriverError, StoreGone, StoreReplaced, StoreSilent, StoreUnfit
from sluice_s3.storage_drivers.health import check_identity
from sluice_s3.storage_drivers.identity import Identity

if TYPE_CHECKING:
    from sluice_s3.app.init_file.document import Document

logger = logging.getLogger("sluice.store")

RELAXED_LOSS_MS = 120_000
"""Milliseconds of changes that an unsynced index may lose in a power cut: the kernel writes back within 35 s."""

StoreIdentities = Mapping[str, tuple[str, int]]
"""The stores that the index knows by name: UUID and generation."""


class CannotStart(Exception):
    """The gateway cannot run on this directory; the message has the reason for the operator."""


class IndexSilent(CannotStart):
    """The index did not answer for as long as a start waits for it."""


class IndexIsBehind(CannotStart):
    """The index is an older state of itself: journals or commits go beyond it."""

    def __init__(self, message: str, span_ms: int) -> None:
        super().__init__(message, span_ms)  # both, so that it can be pickled: see `app.server.processes.isolated_call`
        self._message = message
        self.span_ms = span_ms
        """Milliseconds of changes that the journals have beyond it."""

    def __str__(self) -> str:
        return self._message


def prepare(settings: Settings, *, allow_well_known: bool = False) -> Credentials:
    """Create or check everything that workers need, and sweep after the last run.

    Several gateways of one index may do so concurrently. An index that lost what a power cut may take from a relaxed
    index is brought up to date. `allow_well_known` is of `root_credentials`. Raises CannotStart.
    """
    try:
        return _prepare_once(settings, allow_well_known)
    except IndexIsBehind as error:
        if settings.durability != "relaxed" or error.span_ms > RELAXED_LOSS_MS:
            raise
        _bring_up_to_date(settings, error)
    return _prepare_once(settings, allow_well_known)


def _bring_up_to_date(settings: Settings, error_at_start: IndexIsBehind) -> None:
    from sluice_s3.app.jobs.journals.recover import open_recovery  # it imports both engines of the index

    try:
        with open_recovery(settings) as work:
            report = work.run()
            if report.damage:
                raise error_at_start
            work.replace_base()
    except (DomainError, DriverError, OSError, apsw.Error) as error:
        raise CannotStart(f"{error_at_start}; at the start it failed: {error}") from error
    logger.warning(
        "index: it lacked %.1f seconds of the journals' changes, and maybe some that they do not tell, as after a "
        "power cut: brought up to date, "
        "%d writes without a known outcome were left out",
        error_at_start.span_ms / 1000,
        report.counts["not_restored"],
    )


def _prepare_once(settings: Settings, allow_well_known: bool) -> Credentials:
    document = _read_init_file(settings)  # this and the next before anything is created
    try:
        buckets = parse_buckets(settings.default_buckets)
        make_directories(settings.home, settings.run_dir)
        make_directory(settings.run_dir / "writers")
        return asyncio.run(_prepare(settings, buckets, document, allow_well_known))
    except (WeakCredentials, BucketRefused, DriverError) as error:
        raise CannotStart(str(error)) from error
    except DomainError as error:
        raise CannotStart(f"the index cannot be used: {describe(error)}") from error
    except OSError as error:
        raise CannotStart(describe_failure(error, settings.home)) from error


async def _prepare(
    settings: Settings, buckets: list[WantedBucket], document: Document | None, allow_well_known: bool
) -> Credentials:
    async with AsyncExitStack() as stack:
        await _wait_for_index(settings)
        index = open_index(settings)
        await _start_newest(index, settings)
        stack.push_async_callback(index.close)
        await stack.enter_async_context(_hold_startup_lease(index))
        identities = await index.identities()
        await require_configured_stores(index, settings)
        store = make_stores(index, settings, identities)
        await _start_all(store, identities, settings.workers, stack)
        try:
            await make_ring(index, settings)
        except RingError as error:
            raise CannotStart(str(error)) from None
        credentials = root_credentials(settings, allow_well_known=allow_well_known)
        try:
            root_id = await ensure_root(index, await _find_root_uuid(store), credentials)
        except AccountExists:
            raise CannotStart("the root access key belongs to another account (see `sluice user list`)") from None
        await make_buckets(store, settings, buckets, root_id)
        await _apply_init_file(store, settings, document)
        try:
            await sweep(store, index.is_writer_dead)
        except StoreUnavailable as error:
            logger.warning("sweep: %s, which the workers go on with", type(error).__name__)
        return credentials


async def _wait_for_index(settings: Settings) -> None:
    """Wait for a Postgres index as long as the settings say. Raises IndexSilent."""
    if settings.index_url is None or not settings.wait_index:
        return
    from sluice_s3.app.index.postgres.wait import wait_for_postgres

    if (reason := await wait_for_postgres(settings.index_url, settings.wait_index)) is not None:
        raise IndexSilent(f"the index cannot be used: {reason}")


async def _start_newest(index: Index, settings: Settings) -> None:
    try:
        await index.start(migrate=True)
    except IndexBehind as error:
        async with open_store(settings):  # raises too: the journals may show how far it is behind
            raise _to_startup_error(error) from error


async def _start_all(store: Store, identities: StoreIdentities, workers: int, stack: AsyncExitStack) -> None:
    """Start all stores.

    One must be in service, or hang, which another start would not change. Raises CannotStart.
    """
    stores: list[Store] = []
    for one in store.all.values():
        stack.push_async_callback(one.close)
        if not one.driver.capabilities.one_process:
            stores.append(one)
        elif workers > 1:
            raise CannotStart(f"store {one.name}: it is of one process, which wants --workers 1")
        elif one.name in store.classes.values():
            raise CannotStart(f"store {one.name}: it ends with its process, so that no storage class can have it")
        elif one.name in identities:
            raise CannotStart(f"store {one.name}: what was in it ended with its process, but not the index of it")
    # in parallel: a store that hangs takes its whole limit
    for error in await asyncio.gather(
        *(_start_watched(one, identities, stack) for one in stores), return_exceptions=True
    ):
        if error is not None:
            raise error
    refusals = [one.breaker.refused for one in store.all.values() if one.breaker is not None]
    if refusals and not any(error is None or _is_silent(error) for error in refusals):
        raise CannotStart(_with_store_name(store, refusals[0]))


async def _start_watched(store: Store, identities: StoreIdentities, stack: AsyncExitStack) -> None:
    """Start a store under its circuit breaker.

    A store that the index knows may be out of service already. Raises CannotStart for a mount that cannot keep its
    promise, for another store, and for a new store that cannot be created.
    """
    breaker = store.breaker
    assert breaker is not None
    try:
        await breaker.start(identities.get(store.name))
        refused = breaker.refused
        if refused is not None and not _is_transient(refused):
            raise refused
    except DriverError as error:
        cause = error.__cause__
        if isinstance(cause, PermissionError) and cause.filename:
            raise CannotStart(_with_store_name(store, describe_failure(cause, Path(cause.filename).parent))) from error
        raise CannotStart(_with_store_name(store, error, identities)) from error
    stack.push_async_callback(_cancel_and_wait, asyncio.create_task(breaker.run(_ignore_state)))
    if refused is None:
        await _bind(store, identities)
        if (probe := store.driver.probe) is not None:
            level = logging.WARNING if probe.warnings else logging.INFO if probe.lacks else logging.DEBUG
            logger.log(level, "store %s: %s", store.name, probe.line)


def _is_transient(error: DriverError) -> bool:
    """Return whether a store may recover from an error by itself, without an operator."""
    if isinstance(error, StoreUnfit):
        return error.kind in ("no-answer", "error")
    if isinstance(error, StoreGone):
        return not isinstance(error, StoreReplaced)
    return _is_silent(error) or isinstance(error.__cause__, OSError)


def _is_silent(error: DriverError) -> bool:
    return isinstance(error, StoreSilent) or (isinstance(error, StoreUnfit) and error.kind == "no-answer")


def _with_store_name(store: Store, what: DriverError | str | None, identities: StoreIdentities | None = None) -> str:
    """Return what is wrong with a store, for the operator."""
    named = "" if store.name == DEFAULT else f"store {store.name}: "
    if isinstance(what, StoreReplaced) and identities is not None:
        uuid, generation = identities[store.name]
        return f"{named}the index is of store {uuid} generation {generation}, but {what}"
    return f"{named}{what}"


def _ignore_state(_name: str, _condition: str, *_counts: int) -> None:
    """Ignore a store's state: no workers need it yet."""


async def _cancel_and_wait(watching: asyncio.Task[None]) -> None:
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


@asynccontextmanager
async def _hold_startup_lease(index: Index) -> AsyncIterator[None]:
    """Hold a lease, so that gateways that start together prepare one after the other."""
    if not index.many_hosts:
        yield
        return
    is_logged = False
    while (lease := await index.take_lease("start")) is None:
        if not is_logged:
            logger.info("another gateway starts just now: waiting for it")
            is_logged = True
        for writer in await index.writers():
            if writer.state == LIVE and index.is_writer_dead(writer):
                await index.declare_dead(writer.incarnation)
        await asyncio.sleep(0.1)
    with with_lease(lease):
        yield
    await index.release_lease(lease)


@asynccontextmanager
async def open_store(settings: Settings) -> AsyncIterator[Store]:
    """Open the default store for a command that may run beside a server. Raises CannotStart."""
    if settings.index_is_missing:
        raise CannotStart(f"there is no index at {settings.index_path}")
    async with AsyncExitStack() as stack:
        index = open_index(settings, writer=False)
        await index.start()
        stack.push_async_callback(index.close)
        await require_configured_stores(index, settings)
        store = make_stores(index, settings)
        identities = await index.identities()
        for one in store.all.values():
            stack.push_async_callback(one.close)
            if one.driver.capabilities.one_process:
                raise CannotStart(f"store {one.name}: nothing can look at it but its server")
            await start_store(one, identities)
        try:
            await index.check()
        except IndexBehind as error:
            raise _to_startup_error(error) from error
        yield store


async def start_store(store: Store, identities: StoreIdentities) -> None:
    """Start a store; bind the index to it if the index lacks that name.

    Raises CannotStart.
    """
    try:
        await store.start()
    except DriverError as error:
        raise CannotStart(_with_store_name(store, error)) from error
    await _bind(store, identities)


async def _bind(store: Store, identities: StoreIdentities) -> None:
    found = store.driver.identity
    assert found is not None
    try:
        if store.name in identities:
            check_identity(found, Identity(*identities[store.name]))
            await _check_position(store)
            return
        empty = await store.driver.empty()
    except DriverError as error:
        raise CannotStart(_with_store_name(store, error, identities)) from error
    # a crash just after the store's creation also leaves one without an index
    if not empty:
        raise CannotStart(
            _with_store_name(store, "there is data here but no index of it: `sluice rebuild` builds one from the data")
        )
    await store.index.set_identity(*found, store.name)


async def _check_position(store: Store) -> None:
    """Raise CannotStart unless the index is current against the store's journals."""
    try:
        await require_current(store)
        await clear_wrong_index(store)
    except IndexBehind as error:
        raise _to_startup_error(error) from error
    except IndexForeign as error:
        raise CannotStart(str(error.detail["reason"])) from error
    except DomainError as error:
        raise CannotStart(f"the journals of store {store.name} cannot be read: {type(error).__name__}") from error


def _to_startup_error(error: IndexBehind) -> IndexIsBehind:
    return IndexIsBehind(str(error.detail["reason"]), int(str(error.detail["span_ms"])))


async def require_configured_stores(index: Index, settings: Settings) -> None:
    """Raise CannotStart when the settings lack a store that holds buckets."""
    used = await index.stores_in_use()
    for name in sorted(used.keys() - settings.named_stores.keys()):
        raise CannotStart(f"the index has {used[name]} buckets on the store {name!r}, which the settings do not name")
    identities = await index.identities()
    for name in sorted(identities.keys() - settings.named_stores.keys()):
        if await index.any_on(name):
            raise CannotStart(f"the index has objects on the store {name!r}, which the settings do not name")


async def _find_root_uuid(store: Store) -> str:
    """Return the UUID from which the first account's id is derived.

    It stays the same when stores come and go.
    """
    index = store.index
    root_uuid = await index.note(ROOT_NOTE)
    if not root_uuid:
        identities = await index.identities()
        root_uuid = (identities.get(DEFAULT) or identities.get(store.name) or store.driver.identity or ("",))[0]
        await index.set_note(ROOT_NOTE, root_uuid)
    return root_uuid


def _read_init_file(settings: Settings) -> Document | None:
    """Return what the init file says; None without one. Raises CannotStart."""
    if settings.init_file is None:
        return None
    from sluice_s3.app.init_file.changes import InitError
    from sluice_s3.app.init_file.document import read_init_file

    try:
        return read_init_file(settings.init_file)
    except InitError as error:
        raise CannotStart(str(error)) from None


async def _apply_init_file(store: Store, settings: Settings, document: Document | None) -> None:
    if document is None or settings.init_file is None:
        return
    from sluice_s3.app.init_file.apply import apply_document
    from sluice_s3.app.init_file.changes import InitError

    try:
        await apply_document(settings, store, document, settings.init_file)
    except InitError as error:
        raise CannotStart(f"{settings.init_file}: {error}") from None
