"""An SQLite index that is removed, damaged or replaced by an older one, and the documented way out."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from tests.reliability.lab.faults.registry import Scene, fault, on_postgres, on_sqlite

SLACK_SECONDS = 2.5
"""Of the window: journals are written about every second, and the metric is as old as its answer."""
PAGE_BYTES = 4096


def _rebuild(scene: Scene) -> None:
    """As docs/guides/recover-a-lost-index.md says."""
    _recover_by(scene, "rebuild", "--replace")


def _recover_by(scene: Scene, *command: str) -> None:
    done = scene.site.gateways[0].run(*command, check=False)
    if done.returncode not in (0, 4):
        scene.ledger.find("lost", f"`sluice {' '.join(command)}`: {done.returncode} {done.stdout} {done.stderr}")
    scene.site.start()


def _refused(scene: Scene, what: str) -> None:
    """No gateway may serve such an index."""
    gateway = scene.site.gateways[0]
    try:
        gateway.start()
    except RuntimeError:
        gateway.process = None
        return
    scene.ledger.find("wrong", f"{what} is served")
    gateway.kill()


@fault("index-unlinked", on=on_sqlite)
def index_unlinked(scene: Scene) -> Iterator[None]:
    """The file or its log is removed under a running gateway, which must take no change from then on."""
    yield
    scene.quiet()
    os.unlink(scene.site.index / scene.rng.choice(("sluice.db", "sluice.db-wal")))
    scene.clients.resume()
    yield
    scene.clients.pause()
    scene.site.kill()
    _rebuild(scene)
    scene.clients.resume()


@fault("index-lost", on=lambda setup: on_sqlite(setup) and setup.store != "tree")
def index_lost(scene: Scene) -> Iterator[None]:
    """Gateway and index are gone in the middle of the load: only what the metric says may be undone.

    Not of plain files: a file whose row was in no journal has an ETag of its own until it is hashed.
    """
    scene.site.wait_for_journals()  # what may be undone is of this episode
    yield
    _, seconds = scene.site.undecided()
    since = time.monotonic() - seconds - SLACK_SECONDS
    scene.site.kill()
    scene.clients.pause()
    scene.ledger.forget(since)
    shutil.rmtree(scene.site.index)
    scene.site.index.mkdir()
    _refused(scene, "data without an index")
    _rebuild(scene)
    scene.clients.resume()
    yield


def _damage(name: str) -> None:
    @fault(f"index-{name}", on=on_sqlite)
    def damaged(scene: Scene) -> Iterator[None]:
        yield
        scene.quiet()
        scene.site.kill()
        {"truncated": _truncate, "flipped": _flip}[name](scene, scene.site.index / "sluice.db")
        _rebuild(scene)
        scene.clients.resume()
        yield


def _truncate(scene: Scene, index: Path) -> None:
    pages = index.stat().st_size // PAGE_BYTES
    os.truncate(index, scene.rng.randrange(max(pages, 1)) * PAGE_BYTES)


def _flip(scene: Scene, index: Path) -> None:
    """Some bits, anywhere."""
    with index.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        for _ in range(scene.rng.randint(1, 200)):
            at = scene.rng.randrange(size)
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ (1 << scene.rng.randrange(8))]))


_damage("truncated")
_damage("flipped")


@fault("index-restored", on=on_sqlite)
def index_restored(scene: Scene) -> Iterator[None]:
    """An older copy is put in its place."""
    site = scene.site
    saved = site.directory / "saved-index"
    shutil.rmtree(saved, ignore_errors=True)
    site.kill()
    shutil.copytree(site.index, saved)
    site.start()
    yield
    scene.quiet()
    site.kill()
    shutil.rmtree(site.index)
    shutil.copytree(saved, site.index)
    _refused(scene, "an older index")
    _recover_by(scene, "recover")
    scene.clients.resume()
    yield


@fault("database-restored", on=on_postgres)
def database_restored(scene: Scene) -> Iterator[None]:
    """An older copy of the database is put in its place."""
    site = scene.site
    saved = f"{site.database}_saved"
    site.kill()
    _copy(scene, site.database, saved)
    site.start()
    yield
    scene.quiet()
    site.kill()
    _copy(scene, saved, site.database)
    _refused(scene, "an older database")
    _recover_by(scene, "recover")
    scene.clients.resume()
    yield


def _copy(scene: Scene, source: str, copy: str) -> None:
    scene.site.sql(f"DROP DATABASE IF EXISTS {copy} WITH (FORCE)")
    scene.site.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'")
    scene.site.sql(f"CREATE DATABASE {copy} TEMPLATE {source}")
