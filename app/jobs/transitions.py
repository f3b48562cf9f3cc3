"""Moves versions to the stores of other storage classes: what lifecycle rules are due for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from app.index.rows import Bucket
from app.index.telling import Teller
from app.index.transitions import OBJECT, OLDER
from app.jobs.placing import Pacer, Placer, Wish
from app.store.lifecycle import TRANSITION, Due
from app.store.store import Store


async def move(store: Store, bucket: Bucket, due: Sequence[Due], pace: Pacer, teller: Teller | None) -> dict[int, int]:
    """Move what is due in a bucket whose rules say so; the new numbers of versions by the old ones.

    Raises Settled, DomainError.
    """
    done: dict[int, int] = {}
    for storage_class, group in groupby(sorted(due, key=_class), _class):
        target = store.of(store.classes[storage_class])
        placer = Placer(store, bucket, target, pace, settings=bucket.settings, teller=teller)
        done |= await placer.place([_wish(one) for one in group])
    return done


def _class(due: Due) -> str:
    return due.storage_class


def _wish(due: Due) -> Wish:
    states = OBJECT if due.kind == TRANSITION else OLDER
    return Wish(due.key, due.version_id, due.seq, states, due.storage_class)
