"""The drivers of the stores in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sluice_s3.app.crash import crash_point
from sluice_s3.app.encryption.master_key import read_master
from sluice_s3.app.index import Index
from sluice_s3.app.settings import Settings, StoreSettings
from sluice_s3.app.store.availability.circuit_breaker import CircuitBreaker
from sluice_s3.app.store.etags import MD5
from sluice_s3.app.store.named_driver import NamedDriver, locator_prefix
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import Driver, Durability
from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.fsspec.store import is_in_memory
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import TreeFiles

DRIVERS: Mapping[str, tuple[str, str]] = {
    "local": ("sluice_s3.storage_drivers.local", "LocalDriver"),
    "efs": ("sluice_s3.storage_drivers.efs", "EfsDriver"),
    "fuse": ("sluice_s3.storage_drivers.fuse", "FuseDriver"),
    "fsspec": ("sluice_s3.storage_drivers.fsspec.store", "FsspecDriver"),
    "faulty": ("sluice_s3.storage_drivers.faulty", "FaultyDriver"),
}
"""Module and class of each driver.

Drivers with a directory have the constructor of `storage_drivers.local.LocalDriver`, those with a URL that of
`storage_drivers.fsspec.store.FsspecDriver`.
"""
WITH_URL = frozenset({"fsspec"})
NO_CACHES: Mapping[str, int] = {}


def driver_class(name: str) -> Any:
    """Return the class of a driver.

    Raises StoreFailed when there is none, or a package that it needs is not installed.
    """
    if name not in DRIVERS:
        raise StoreFailed(f"there is no driver {name!r}: choose one of {', '.join(DRIVERS)}")
    module, found = DRIVERS[name]
    try:
        return getattr(import_module(module), found)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise StoreFailed(f"the driver {name!r} is not built yet") from None
        raise StoreFailed(f"the driver {name!r} needs the module {error.name!r}, which is not installed") from None


def caches_reads(store: StoreSettings) -> bool:
    """Return whether the driver of a store caches small objects in memory."""
    if store.path is None or not store.read_cache or store.driver not in DRIVERS:
        return False
    return bool(driver_class(store.driver).mount_profile.window)


def new_driver(name: str, store: StoreSettings, *, create: bool = False, read_cache_fd: int | None = None) -> Driver:
    """Create the driver of a store.

    Only with `create` may it create the store. Raises StoreFailed.
    """
    if (store.driver in WITH_URL) != (store.url is not None):
        raise StoreFailed(f"store {name}: the driver {store.driver!r} wants a {'url' if store.path else 'path'}")
    if store.url is not None:
        at: Path | str | None = store.url
        own: dict[str, object] = {"options": store.options}
    else:
        at = store.directory
        own = {
            "pack_threshold": store.pack_threshold,
            "pack_size": store.pack_size,
            "read_back": store.read_back,
            "read_cache": store.read_cache,
            "read_cache_fd": read_cache_fd,
        }
    durability = Durability(store.durability or "full")
    try:
        driver: Driver = driver_class(store.driver)(
            at, durability=durability, threads=store.io_threads, create=create, at=crash_point, **own
        )
    except StoreFailed as error:
        raise StoreFailed(f"store {name}: {error}") from error
    return driver


def make_named_driver(name: str, store: StoreSettings, *, create: bool = False) -> NamedDriver:
    """Create the named driver of a store: see `new_driver`."""
    return NamedDriver(new_driver(name, store, create=create), name)


def make_stores(
    index: Index,
    settings: Settings,
    known: Mapping[str, object] | None = None,
    read_caches: Mapping[str, int] = NO_CACHES,
) -> Store:
    """Create all stores of the settings; return the default one, which references the others.

    With `known`, the stores that the index knows, all other stores are created; so is every store that ends with its
    process. `read_caches` are descriptors of memory by the names of stores: see `caches_reads`.
    """
    first: Store | None = None
    for name, store in settings.named_stores.items():
        is_new = known is not None and name not in known
        fleeting = store.url is not None and is_in_memory(store.url)
        shared = read_caches.get(name)
        make_driver = partial(new_driver, name, store, read_cache_fd=shared)
        place = NamedDriver(make_driver(create=is_new or fleeting), name)
        assert store.hang_timeout is not None
        breaker = CircuitBreaker(place, partial(make_driver, create=fleeting), store.hang_timeout)
        first = Store(index, place, name, first, breaker)
        first.etag_kind = store.etag or MD5
        if store.layout == "tree":
            first.tree = make_plain_files(first, store)
            breaker.watch_plain_files(first.tree)
    assert first is not None
    first.keyring.master = partial(read_master, settings)
    first.classes.update(settings.class_stores)
    return first.of(settings.first_store)


def make_plain_files(store: Store, settings: StoreSettings) -> PlainFiles:
    """Create the plain files of a store of layout *tree*, with threads of their own."""
    assert settings.path is not None
    assert settings.io_threads is not None
    threads = StoreThreadPool(settings.io_threads)
    durability = Durability(settings.durability or "full")
    files = TreeFiles(settings.path, threads, durability=durability, crash_hook=crash_point)
    prefix = locator_prefix(store.name)
    return PlainFiles(store.index, files, threads, store.ids, prefix, lambda: store.full, settings.etag or MD5)


def make_driver(settings: Settings, *, create: bool = False) -> Driver:
    """Create the driver of the default store alone, without names in locators."""
    return make_named_driver(settings.first_store, settings.named_stores[settings.first_store], create=create).driver
