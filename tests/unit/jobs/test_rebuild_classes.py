"""Where objects of storage classes lie comes back when the index is lost."""

from __future__ import annotations

from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.named_driver import store_of_locator
from tests.unit.jobs.mixed import tables
from tests.unit.jobs.packed import content
from tests.unit.jobs.test_transitions import TO_SLOW, clean, decide, found, mixed, put_slow, ruled, running
from tests.unit.jobs.test_transitions import settings as settings
from tests.unit.jobs.two import rebuilt, stores
from tests.unit.jobs.versioned import contents
from tests.unit.store.site import put


async def test_an_index_that_is_lost(settings: Settings) -> None:
    """Class and place come back, of what was moved, written there at once, or deleted there; and of open claims."""
    async with stores(settings) as store:
        bucket = await ruled(store, TO_SLOW, versioning=ENABLED)
        await mixed(store, bucket)
        await put_slow(store, bucket, "direct", b"direct" * 10)
        await put_slow(store, bucket, "deleted", b"deleted" * 10)
        await decide(store)
        await objects.delete(store, bucket.id, "deleted", "null", None, {})
        made, _ = running(store, 40)
        await made.run_once()
        found_one = await objects.find(store, bucket.id, "deleted")
        await objects.delete(store, bucket.id, "deleted", found_one.version_id, None, {})
        await decide(store)
        await clean(store)
        before = await contents(store, bucket)
        await put_slow(store, bucket, "claimed", b"claimed" * 10)
    rows = tables(settings.index_path)
    report, lost = rebuilt(settings)
    assert (report.damage, lost, report.restored_claims) == ([], [], 1)
    after = tables(settings.index_path)
    assert [r for r in after["versions"] if r[2] != "claimed"] == [r for r in rows["versions"] if r[2] != "claimed"]
    async with stores(settings) as store:
        assert await content(store, bucket, "claimed") == b"claimed" * 10
        claimed = await found(store, bucket, "claimed")
        assert (claimed.storage_class, store_of_locator(claimed.body)) == ("STANDARD_IA", "slow")
        now = await contents(store, bucket)
        assert {key: body for key, body in now.items() if key[0] != "claimed"} == before
        await clean(store)


async def test_deleted_long_ago_is_not_restored(settings: Settings) -> None:
    """The journals of a store without buckets say nothing of when: those of the object's bucket do."""
    async with stores(settings) as store:
        bucket = await ruled(store, TO_SLOW)
        await decide(store)
        await put_slow(store, bucket, "k", b"x" * 100)
        await objects.delete(store, bucket.id, "k", None, None, {})
        journal_writer = JournalWriter(store.of("fast"), retained=0)
        await journal_writer.run_once()
        await put(store.of("fast"), bucket, "other", b"x")
        journal_writer.request_snapshot()
        for _ in range(3):
            await journal_writer.run_once()
    report, lost = rebuilt(settings)
    assert (report.damage, lost, report.restored_claims) == ([], [], 0)
