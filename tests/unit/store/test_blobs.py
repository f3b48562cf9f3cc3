"""Ids of blobs: a range that cannot be forgotten just now is the sweep's, and nobody fails for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import blob_ids
from tests.support.settings import make_settings
from tests.unit.store.site import opened, prepare, put


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


async def test_an_index_that_is_away_when_the_last_id_of_a_range_is_settled(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(settings) as store:
        store.ids = blob_ids.BlobIds(store.index, 1)
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        retire_range = store.index.retire_range

        async def away(_: object) -> None:
            raise StoreUnavailable(reason="the index is away")

        monkeypatch.setattr(store.index, "retire_range", away)
        await put(store, bucket, "key", bytes(300_000))
        await put(store, bucket, "key", bytes(300_000))
        monkeypatch.setattr(store.index, "retire_range", retire_range)
        await put(store, bucket, "key", bytes(300_000))
        left = await store.index.ranges(store.index.incarnation)  # type: ignore[attr-defined]
        assert len(left) == 1, "the first; the second was retired when the third was begun"
