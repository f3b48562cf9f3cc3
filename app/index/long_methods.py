"""Long readings of `app.index.base.Index`, the same for every engine: which transaction each one runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TypeVar

from app.index import decisions, holders, lifecycle, moving, newest, restores, scrubbing, usage
from app.index.rows import Bucket, Held, Holder, Pack, Suspect
from app.index.schema import DEFAULT
from app.index.steps import Row, Transaction
from app.index.transactions import compaction, packs
from app.index.upkeep import Reference
from app.index.usage import NO_CLASSES

T = TypeVar("T")


class LongMethods:
    """A part of both engines, which give `_long`. What each method means stands in `Index`."""

    async def _long(self, transaction: Transaction[T], *, together: bool = False) -> T:
        """Run a transaction that only reads, beside the loop's other work; `together` in one state of the index."""
        raise NotImplementedError

    async def packs(self) -> list[Pack]:
        return await self._long(packs.all_packs())

    # whose a blob is

    async def find_holders(self, suspects: Sequence[Suspect]) -> dict[str, tuple[Holder, ...]]:
        return await self._long(compaction.find_holders(suspects), together=True)

    async def held(self, locators: Sequence[str], since: int = 0) -> set[str]:
        return await self._long(holders.held(locators, since))

    async def held_in(self, prefixes: Sequence[str], limit: int) -> Held:
        return await self._long(holders.held_in(prefixes, limit), together=True)

    async def miscounted(self) -> list[tuple[str, int, int]]:
        return await self._long(holders.miscounted())

    async def newest_wrong(self) -> list[newest.Wrong]:
        return await self._long(newest.wrong())

    async def references(self) -> AsyncIterator[Reference]:
        for kind in holders.REFERENCES:
            position: holders.Position | None = holders.BEGIN
            while position is not None:
                found, position = await self._long(holders.references(kind, position))
                for reference in found:
                    yield reference

    # moves between stores

    async def bodies(self, bucket_id: int, after: int) -> list[moving.Body]:
        return await self._long(moving.bodies(bucket_id, after))

    async def held_by_pieces(self, upload: int) -> list[moving.Held]:
        return await self._long(moving.pieces(upload))

    async def held_by_parts(self, bucket_id: int) -> list[tuple[str, moving.Held]]:
        return await self._long(moving.parts(bucket_id))

    async def any_on(self, store: str) -> bool:
        return await self._long(moving.any_on(store))

    async def bucket_size(self, bucket_id: int) -> tuple[int, int]:
        return await self._long(moving.size(bucket_id))

    async def bucket_usage(self, bucket_id: int) -> usage.Usage:
        return await self._long(usage.of_bucket(bucket_id))

    # lifecycle rules

    async def lifecycle_buckets(self) -> list[Bucket]:
        return await self._long(lifecycle.buckets())

    async def lifecycle_page(
        self, bucket_id: int, place: lifecycle.Place, end: str, *, tags: bool
    ) -> tuple[list[Row], lifecycle.Place | None]:
        return await self._long(lifecycle.page(bucket_id, place, end, tags=tags), together=True)

    async def restores_due(self, now: int, limit: int) -> list[restores.Pending]:
        return await self._long(restores.due(now, limit))

    async def bucket_of(self, bucket_id: int) -> Bucket | None:
        return await self._long(restores.bucket(bucket_id))

    # decisions

    async def changes(
        self, after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
    ) -> decisions.Changes:
        return await self._long(decisions.changes(after, until, store, completed), together=True)

    async def settings_rows(self) -> str:
        return await self._long(decisions.settings())

    async def upload_rows(self, ids: Sequence[int]) -> str:
        return await self._long(decisions.uploads_of(ids))

    async def upload_rows_after(self, after: int, store: str = DEFAULT) -> tuple[str, int | None]:
        return await self._long(decisions.uploads_after(after, store))

    async def piece_rows(
        self, ids: Sequence[int] | None, after: decisions.Place, store: str = DEFAULT
    ) -> tuple[str, decisions.Place | None]:
        return await self._long(decisions.pieces_of(ids, after, store))

    async def versions_count(self, store: str = DEFAULT) -> int:
        return await self._long(decisions.versions_count(store))

    async def stored_bytes(
        self, store: str, classes: Mapping[str, str] = NO_CLASSES, trees: Collection[str] = ()
    ) -> int:
        if classes:
            return await self._long(usage.stored_of_classes(store, classes, trees))
        return await self._long(decisions.stored_bytes(store))

    async def undecided(self, store: str = DEFAULT) -> tuple[int, int]:
        return await self._long(decisions.undecided(store))

    # scrub

    async def live(self, kind: str, after: decisions.Place) -> tuple[list[scrubbing.Live], decisions.Place | None]:
        return await self._long(scrubbing.live(kind, after))

    async def holds(self, row: scrubbing.Live) -> bool:
        return await self._long(scrubbing.holds(row))
