"""A worker process on a store, which does what it is told and dies at the crash point it is told."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import sluice_s3.app.crash
import sluice_s3.app.index.sqlite.index  # so that processes find it loaded when they are forked
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES, Extent, Part, Upload
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.versioning.rows import Deletion
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import multipart, objects, reading
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store
from tests.unit.store.counted_model import Look, Name, Seen
from tests.unit.store.site import Bytes, opened

GRACE = 1.0
"""Seconds that garbage waits; the clock is the test's."""
RATE = 1 << 30


class Died(Exception):
    """The worker came to its crash point; the message is the point's name."""


class Refused(Exception):
    """The operation raised a domain error; the message is the error's name."""


class Worker:
    """A process with the store open. It is started when first asked, and again when it has died.

    Without `holes` it leaves dead records to compaction, which passes over packs that were punched.
    """

    def __init__(self, settings: Settings, *, holes: bool) -> None:
        self._settings = settings
        self._holes = holes
        self._process: Any = None
        self._pipe: Connection | None = None

    @property
    def runs(self) -> bool:
        """It was started and did not die."""
        return self._process is not None

    def ask(self, command: str, *arguments: object, crash: int = 0) -> Any:
        """Have it done; the process ends at the `crash`th crash point that it comes to. Raises Refused, Died."""
        self.send(command, *arguments, crash=crash)
        return self.receive()

    def send(self, command: str, *arguments: object, crash: int = 0) -> None:
        """Have it begun; `receive` waits for its end."""
        if self._process is None:
            context = get_context("forkserver")
            context.set_forkserver_preload([__name__])
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=_main, args=(self._settings, self._holes, other), daemon=True)
            self._process.start()
            other.close()
        assert self._pipe is not None
        self._pipe.send((command, arguments, crash))

    def receive(self) -> Any:
        """What came of what was sent. Raises Refused, Died."""
        assert self._pipe is not None
        try:
            kind, answer = self._pipe.recv()
        except EOFError:
            kind, answer = "died", "of itself"
        if kind == "died":
            self._end()
            raise Died(answer)
        if kind == "refused":
            raise Refused(answer)
        if kind == "failed":
            raise AssertionError(answer)
        return answer

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self._process is not None:
            assert self._pipe is not None
            self._pipe.send(("stop", (), 0))
            self._end()

    def _end(self) -> None:
        self._process.join()
        self._process.close()
        assert self._pipe is not None
        self._pipe.close()
        self._process = None


def _main(settings: Settings, holes: bool, pipe: Connection) -> None:
    multipart.MIN_PART = 1
    asyncio.run(_serve(settings, holes, pipe))


async def _serve(settings: Settings, holes: bool, pipe: Connection) -> None:
    left = 0

    def come_by(name: str, _: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            pipe.send(("died", name))
            os._exit(137)

    sluice_s3.app.crash._crash = come_by
    sluice_s3.app.crash._ARMED = True
    async with opened(settings) as store:
        store.ids = BlobIds(store.index, 4)
        if not holes:
            store.driver._packs.page = 0  # type: ignore[attr-defined]
        store.open_packs()
        hands = Hands(settings, store)
        while True:
            command, arguments, crash = await asyncio.to_thread(pipe.recv)
            if command == "stop":
                break
            left = crash
            try:
                answer = "done", await getattr(hands, command)(*arguments)
            except DomainError as error:
                answer = "refused", type(error).__name__
            except Exception as error:
                answer = "failed", f"{type(error).__name__}: {error}"
            left = 0
            pipe.send(answer)
        await store.close_packs()
        await store.ids.close()


class Hands:
    """The commands."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._now = 0
        self._oldest = 0
        self._garbage = GarbageCollector(store, lambda: self._oldest, lambda: self._now, GRACE)
        self._compactor = Compactor(store, RATE, GRACE, lambda moved, freed: None, lambda: self._now / 1000)
        self._buckets: dict[str, Bucket] = {}
        self._readers: dict[int, Version] = {}

    async def _bucket(self, name: str) -> int:
        if name not in self._buckets:
            found = await self._store.index.bucket(name)
            assert found is not None
            self._buckets[name] = found
        return self._buckets[name].id

    async def _find(self, name: Name) -> Version:
        return await objects.find(self._store, await self._bucket(name[0]), name[1])

    # objects

    async def put(self, name: Name, content: bytes, conditions: Conditions | None) -> None:
        source = Bytes(content)
        await objects.put(self._store, await self._bucket(name[0]), name[1], source, source.describe, conditions, {})

    async def copy(self, source: Name, name: Name, conditions: Conditions | None) -> None:
        async def describe(found: Version) -> NewVersion:
            return NewVersion(found.size, found.etag, "{}", "STANDARD", "", "", "", found.body, found.parts, "owner")

        bucket_id = await self._bucket(name[0])
        await objects.copy(self._store, lambda: self._find(source), bucket_id, name[1], describe, conditions, {})

    async def delete(self, name: Name, conditions: Conditions | None) -> None:
        await objects.delete(self._store, await self._bucket(name[0]), name[1], None, conditions, {})

    async def delete_many(self, bucket: str, keys: list[str]) -> None:
        entries = [Deletion(key, None, None) for key in keys]
        await objects.delete_many(self._store, await self._bucket(bucket), entries, {})

    async def together(self, commands: list[tuple[str, tuple[Any, ...]]]) -> list[str]:
        """Several at once; the names of what they raised."""
        calls = [getattr(self, command)(*arguments) for command, arguments in commands]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, DomainError):
                raise answer
        return ["" if answer is None else type(answer).__name__ for answer in answers]

    # uploads

    async def create_upload(self, name: Name) -> Upload:
        bucket_id = await self._bucket(name[0])
        return await self._store.index.create_upload(bucket_id, name[1], "{}", "STANDARD", "", "", "owner")

    async def put_part(self, upload: Upload, number: int, content: bytes) -> None:
        source = Bytes(content)

        def describe(extents: tuple[Extent, ...]) -> Part:
            return Part(number, len(content), hashlib.md5(content).hexdigest(), 0, "", "", extents)

        await multipart.put_part(self._store, upload, source, describe, {})

    async def copy_part(self, source: Name, upload: Upload, number: int, offset: int, length: int) -> None:
        async def describe(found: Version) -> tuple[Part, int, int]:
            return Part(number, length, f"{found.etag}-{offset}-{length}", 0, "", "", ()), offset, length

        await multipart.copy_part(self._store, lambda: self._find(source), upload, describe, {})

    async def complete(self, upload: Upload, numbers: list[int], conditions: Conditions | None) -> None:
        found = await multipart.find_upload(self._store, upload.bucket_id, upload.key, upload.upload_id)
        parts = {part.number: part for part in await self._store.index.parts(found, 0, multipart.MAX_PARTS)}
        named = [(number, parts[number].etag) for number in sorted(numbers)]
        chosen = await multipart.choose(self._store, found, named)
        size = sum(part.size for part in chosen)
        new = NewVersion(size, f"{upload.id}", "{}", "STANDARD", "", "", "", "", len(chosen), "owner")
        await multipart.complete(self._store, found, chosen, new, conditions, {})

    async def abort(self, upload: Upload) -> None:
        await self._store.index.abort_upload(upload)

    # readers that take their time

    async def begin_reading(self, reader: int, name: Name) -> None:
        self._readers[reader] = await self._find(name)

    async def end_reading(self, reader: int) -> str:
        return await self._digest(self._readers.pop(reader))

    async def _digest(self, version: Version) -> str:
        found = hashlib.sha1()
        answer = await reading.read_body(self._store, version, 0, version.size, {})
        if isinstance(answer, bytes):
            found.update(answer)
        else:
            async for piece in answer:
                if isinstance(piece, bytes):
                    found.update(piece)
                    continue
                found.update(os.pread(piece.fd, piece.count, piece.offset))
                piece.release()
        fed = hashlib.sha1()
        await reading.feed_bytes(self._store, version, 0, version.size, fed.update)
        assert fed.digest() == found.digest(), "both ways of reading give the same"
        return found.hexdigest()

    # what happens later

    async def jobs(self, now: int, oldest: int, elected: bool) -> None:
        """A round of what `app.jobs.runner` runs."""
        self._now, self._oldest = now, oldest
        await self._store.report_rejected_records()
        with translate_driver_errors():
            await self._store.driver.close_unlinked()
        if elected:
            await sweep(self._store, self._store.index.is_writer_dead)
            await self._garbage.run_once()
            await self._compactor.run_once()

    # looking

    async def look(self) -> Look:
        """Every row that a client could find, read through."""
        found: dict[Name, Seen] = {}
        for bucket in ("one", "two"):
            page = await self._store.index.list_current(await self._bucket(bucket), "", "", "", 1000)
            for entry in page.entries:
                version = await self._find((bucket, entry.key))
                assert version.size == entry.size
                extents = [extent async for extent in reading.extents(self._store, version, 0, version.size)]
                upload = int(version.body.removeprefix(PIECES)) if version.body.startswith(PIECES) else 0
                found[bucket, entry.key] = Seen(await self._digest(version), self._ids(extents), upload)
        parts: dict[int, dict[int, Seen]] = {}
        for bucket in ("one", "two"):
            uploads, _, _ = await self._store.index.uploads(await self._bucket(bucket), "", "", "", "", 1000)
            for upload in uploads:
                rows = await self._store.index.parts(upload, 0, multipart.MAX_PARTS)
                parts[upload.id] = {part.number: await self._part(part) for part in rows}
        return Look(found, parts)

    async def _part(self, part: Part) -> Seen:
        fed = hashlib.sha1()
        for locator, offset, size in part.extents:
            await self._store.driver.feed(locator, offset, size, fed.update)
        assert part.size == sum(extent.size for extent in part.extents)
        return Seen(fed.hexdigest(), self._ids(part.extents))

    def _ids(self, extents: list[Extent] | tuple[Extent, ...]) -> tuple[tuple[int, int, int], ...]:
        return tuple((self._store.driver.blob_id(extent.locator), extent.offset, extent.size) for extent in extents)

    async def on_disk(self) -> tuple[set[int], set[int]]:
        """Ids of the blobs in files of their own, and of those in packs."""
        files, packed = set(), set()
        async for locator, _ in self._store.driver.walk():
            kind = files if self._store.driver.packed(locator) is None else packed
            kind.add(self._store.driver.blob_id(locator))
        return files, packed

    async def counted(self) -> dict[int | str, int]:
        """The rows of `shared`, blobs by their ids."""

        def read() -> list[tuple[str, int]]:
            with closing(open_connection(self._settings.index_path)) as connection:
                return connection.execute("SELECT body, holders FROM shared").fetchall()

        return {
            body if body.startswith(PIECES) else self._store.driver.blob_id(body): holders
            for body, holders in await asyncio.to_thread(read)
        }

    async def waiting(self) -> int:
        """Entries of the discard queue."""
        return len(await self._store.index.discards(0, 1000))

    async def complaints(self) -> tuple[str, int]:
        """What fsck has to say, empty when all is well, and how many dead bytes of closed packs are not counted."""
        report = await fsck(self._store, repair=False)
        return "" if report.clean else str(report), report.uncounted
