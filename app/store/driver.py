"""The drivers that settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from app.crash import crash_point
from app.encryption.master import read_master
from app.index import Index
from app.settings import Settings, StoreSettings
from app.store.breaker import Breaker
from app.store.place import Place, prefix_of
from app.store.store import Store
from app.store.tree import Tree
from storage_drivers.base import Driver, Durability
from storage_drivers.errors import StoreFailed
from storage_drivers.remote.store import is_of_one_process
from storage_drivers.threads import Threads
from storage_drivers.tree import TreeFiles

DRIVERS: Mapping[str, tuple[str, str]] = {
    "local": ("storage_drivers.local", "LocalDriver"),
    "efs": ("storage_drivers.efs", "EfsDriver"),
    "fuse": ("storage_drivers.fuse", "FuseDriver"),
    "fsspec": ("storage_drivers.remote.store", "FsspecDriver"),
}
"""Module and class of each driver. Those with a directory are called like `storage_drivers.local.LocalDriver`, those
with a URL like `storage_drivers.remote.store.FsspecDriver`."""
WITH_URL = frozenset({"fsspec"})


def driver_class(name: str) -> Any:
    """The class of a driver. Raises StoreFailed when there is none, or what it needs is not installed."""
    if name not in DRIVERS:
        raise StoreFailed(f"there is no driver {name!r}: choose one of {', '.join(DRIVERS)}")
    module, found = DRIVERS[name]
    try:
        return getattr(import_module(module), found)
    except ModuleNotFoundError as error:
        if error.name == module:
            raise StoreFailed(f"the driver {name!r} is not built yet") from None
        raise StoreFailed(f"the driver {name!r} needs the module {error.name!r}, which is not installed") from None


def new_driver(name: str, store: StoreSettings, *, create: bool = False) -> Driver:
    """A driver of a store. Only `create` may make a store where there is none. Raises StoreFailed."""
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
        }
    durability = Durability(store.durability or "full")
    try:
        driver: Driver = driver_class(store.driver)(
            at, durability=durability, threads=store.io_threads, create=create, at=crash_point, **own
        )
    except StoreFailed as error:
        raise StoreFailed(f"store {name}: {error}") from error
    return driver


def make_place(name: str, store: StoreSettings, *, create: bool = False) -> Place:
    """The place of a store, with a new driver: see `new_driver`."""
    return Place(new_driver(name, store, create=create), name)


def make_stores(index: Index, settings: Settings, known: Mapping[str, object] | None = None) -> Store:
    """All stores of the settings; returns the default one, which knows the others.

    With `known`, the stores that the index knows, those that are not among them are made; and whatever ends with its
    process is made anew.
    """
    first: Store | None = None
    for name, store in settings.named_stores.items():
        made = known is not None and name not in known
        fleeting = store.url is not None and is_of_one_process(store.url)
        place = make_place(name, store, create=made or fleeting)
        assert store.hang_timeout is not None
        breaker = Breaker(place, partial(new_driver, name, store, create=fleeting), store.hang_timeout)
        first = Store(index, place, name, first, breaker)
        if store.layout == "tree":
            first.tree = make_tree(first, store)
            breaker.also(first.tree)
    assert first is not None
    first.keyring.master = partial(read_master, settings)
    first.classes.update(settings.class_stores)
    return first.of(settings.first_store)


def make_tree(store: Store, settings: StoreSettings) -> Tree:
    """The plain files of a store of layout *tree*, with threads of their own."""
    assert settings.path is not None
    assert settings.io_threads is not None
    threads = Threads(settings.io_threads, "tree")
    durability = Durability(settings.durability or "full")
    files = TreeFiles(settings.path, threads, durability=durability, at=crash_point)
    return Tree(store.index, files, threads, store.ids, prefix_of(store.name), lambda: store.full)


def make_driver(settings: Settings, *, create: bool = False) -> Driver:
    """The driver of the default store alone, with the locators that are its own."""
    return make_place(settings.first_store, settings.named_stores[settings.first_store], create=create).driver
