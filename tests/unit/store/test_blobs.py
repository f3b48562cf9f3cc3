"""Ids of blobs: a range that cannot be forgotten just now is the sweep's, and nobody fails for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.s3.errors import IncompleteBody
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import blob_ids
from sluice_s3.storage_drivers.errors import StoreFailed
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


@pytest.mark.parametrize("mount_fails", [True, False])
async def test_an_id_stays_open_while_its_file_may_be_there(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, mount_fails: bool
) -> None:
    """A client may give up while its mount fails: then nothing knows whether the file is gone."""
    async with opened(settings) as store:
        store.ids = blob_ids.BlobIds(store.index, 1)
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)

        async def gives_up(*_: object) -> str:
            raise IncompleteBody()

        async def fails(_: int) -> None:
            raise StoreFailed("the store is closed")

        monkeypatch.setattr(store.driver, "put", gives_up)
        if mount_fails:
            monkeypatch.setattr(store.driver, "discard_id", fails)
        with pytest.raises(IncompleteBody):
            await put(store, bucket, "key", bytes(300_000))
        left = await store.index.ranges(store.index.incarnation)  # type: ignore[attr-defined]
        assert len(left) == mount_fails
