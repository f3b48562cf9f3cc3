"""The index: rows, and the only commit point of the store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice_s3.app.index.interface import Index

if TYPE_CHECKING:
    from sluice_s3.app.settings import Settings

__all__ = ["Index", "open_index"]


def open_index(
    settings: Settings,
    *,
    writer: bool = True,
    lost: Callable[[], None] | None = None,
    cut: Callable[[int], None] = lambda _: None,
) -> Index:
    """Return the index that the settings name.

    `writer=False` is for a command beside a running server. `lost` is called on the event loop when this incarnation
    was declared dead (law 5): it never commits again. `cut` is called there with a CLOCK_BOOTTIME in milliseconds, when
    it may be dead without knowing it: the requests that began before that must end (law 2).
    """
    if settings.index_url is not None:
        from sluice_s3.app.index.postgres.index import PostgresIndex

        return PostgresIndex(
            settings.index_url,
            settings.run_dir,
            durability=settings.durability,
            commit_timeout=settings.commit_timeout,
            commit_queue=settings.commit_queue,
            connections=settings.index_connections,
            pooler=settings.index_pooler,
            timeout=settings.index_timeout,
            writer=writer,
            lost=lost,
            cut=cut,
            limit=settings.gateway_timeout,
        )
    from sluice_s3.app.index.sqlite.index import SqliteIndex

    return SqliteIndex(
        settings.index_path,
        settings.run_dir,
        durability=settings.durability,
        commit_timeout=settings.commit_timeout,
        commit_queue=settings.commit_queue,
        writer=writer,
        lost=lost,
    )
