"""Moves of versions to the stores of other storage classes, as lifecycle rules require."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import EventBuilder
from sluice_s3.app.index.relocation.rows import OBJECT, OLDER
from sluice_s3.app.jobs.pacing import Pacer
from sluice_s3.app.jobs.relocation.versions import Relocation, VersionRelocator
from sluice_s3.app.store.lifecycle.evaluator import TRANSITION, DueAction
from sluice_s3.app.store.store import Store


async def transition_versions(
    store: Store, bucket: Bucket, due: Sequence[DueAction], pacer: Pacer, event_builder: EventBuilder | None
) -> dict[int, int]:
    """Move the due versions of a bucket; return their new numbers by the old ones.

    Raises SettingsChanged, DomainError.
    """
    new_seqs: dict[int, int] = {}
    for storage_class, group in groupby(sorted(due, key=_class), _class):
        target = store.of(store.classes[storage_class])
        relocator = VersionRelocator(
            store, bucket, target, pacer, settings=bucket.settings, event_builder=event_builder
        )
        new_seqs |= await relocator.relocate([_make_relocation(entry) for entry in group])
    return new_seqs


def _class(due: DueAction) -> str:
    return due.storage_class


def _make_relocation(due: DueAction) -> Relocation:
    states = OBJECT if due.kind == TRANSITION else OLDER
    return Relocation(due.key, due.version_id, due.seq, states, due.storage_class)
