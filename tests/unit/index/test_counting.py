"""Counted blobs against a model: a blob is in the discard queue exactly when no row holds it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from sluice_s3.app.errors import InvalidPart, NoSuchUpload, PreconditionFailed, SourceGone
from sluice_s3.app.index.buckets import transactions as buckets
from sluice_s3.app.index.multipart import transactions as multipart
from sluice_s3.app.index.multipart.rows import PIECES, Extent, Part, Upload
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.reclaim import discards
from sluice_s3.app.index.reclaim import queries as reference_queries
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.index.versioning.rows import Deletion
from tests.support.environment import sized
from tests.unit.index.tools import OWNER, Memory, new

pytestmark = pytest.mark.slow

KEYS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(1, 3)
FAILING = Conditions(if_match="no such etag")


class CountedBlobs(RuleBasedStateMachine):
    """Every blob has a name of its own. The model keeps who holds which, without counting."""

    uploads = Bundle("uploads")
    seqs = Bundle("seqs")

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()
        self.bucket_id = self.memory.run(buckets.create_bucket("b", OWNER, "r", 10)).id
        self.blobs: set[str] = set()
        self.current: dict[str, tuple[int, str]] = {}
        """Key: (seq, body)."""
        self.parts: dict[int, dict[int, list[str]]] = {}
        """Parts of open and aborted uploads."""
        self.pieces: dict[int, list[str]] = {}
        """Blobs of completed uploads, in order; empty parts are empty names."""
        self.open: set[int] = set()
        self.taken_away: set[str] = set()

    def teardown(self) -> None:
        self.memory.close()

    def blob(self) -> str:
        name = f"blob{len(self.blobs)}"
        self.blobs.add(name)
        return name

    def source(self, seq: int) -> str | None:
        return next((body for held, body in self.current.values() if held == seq), None)

    @rule(target=seqs, key=KEYS, empty=st.booleans())
    def put(self, key: str, empty: bool) -> int:
        body = "" if empty else self.blob()
        seq = self.memory.run(objects.put_version(self.bucket_id, key, new(body), None)).seq
        self.current[key] = (seq, body)
        return seq

    @rule(key=KEYS)
    def put_refused(self, key: str) -> None:
        try:
            self.memory.run(objects.put_version(self.bucket_id, key, new("never"), Conditions(if_none_match=True)))
        except PreconditionFailed:
            assert key in self.current
        else:
            self.memory.run(objects.delete_version(self.bucket_id, key, None, None))
            self.taken_away.add("never")
            self.blobs.add("never")
            ids = [entry.id for entry in self.queue() if entry.body == "never"]
            self.memory.run(discards.forget_discards([(number, 0, 0) for number in ids]))

    @rule(target=seqs, seq=seqs, key=KEYS)
    def copy(self, seq: int, key: str) -> Any:
        body = self.source(seq)
        try:
            made = self.memory.run(objects.copy_version(seq, self.bucket_id, key, new(), None)).seq
        except SourceGone:
            assert body is None
            return multiple()
        assert body is not None
        self.current[key] = (made, body)
        return made

    @rule(keys=st.lists(KEYS, max_size=3), refused=st.booleans())
    def delete(self, keys: list[str], refused: bool) -> None:
        conditions = FAILING if refused else Conditions()
        self.memory.run(objects.delete_versions(self.bucket_id, [Deletion(key, None, conditions) for key in keys]))
        if not refused:
            for key in keys:
                self.current.pop(key, None)

    @rule(target=uploads, key=KEYS)
    def create_upload(self, key: str) -> Upload:
        made = self.memory.run(multipart.create_upload(self.bucket_id, key, "{}", "", "", "", OWNER))
        self.parts[made.id] = {}
        self.open.add(made.id)
        return made

    @rule(upload=uploads, number=NUMBERS, count=st.integers(0, 2))
    def put_part(self, upload: Upload, number: int, count: int) -> None:
        blobs = [f"blob{len(self.blobs) + more}" for more in range(count)]
        self._put_part(upload, number, blobs, multipart.put_part, ())
        if upload.id in self.open:
            self.blobs.update(blobs)

    @rule(upload=uploads, number=NUMBERS, seq=seqs, data=st.data())
    def copy_part(self, upload: Upload, number: int, seq: int, data: st.DataObject) -> None:
        body = self.source(seq)
        if body is None:
            return
        held = self.pieces[int(body.removeprefix(PIECES))] if body.startswith(PIECES) else [body]
        blobs = [name for name in data.draw(st.lists(st.sampled_from(held), max_size=3)) if name] if held else []
        self._put_part(upload, number, blobs, multipart.copy_part, (seq,))

    def _put_part(self, upload: Upload, number: int, blobs: list[str], put: Any, before: tuple[int, ...]) -> None:
        extents = tuple(Extent(name, 0, 5) for name in blobs)
        try:
            self.memory.run(put(*before, upload, Part(number, 5 * len(blobs), "e", 0, "", "", extents)))
        except NoSuchUpload:
            assert upload.id not in self.open
            return
        assert upload.id in self.open
        self.parts[upload.id][number] = blobs

    @rule(target=seqs, upload=uploads, chosen=st.sets(NUMBERS))
    def complete(self, upload: Upload, chosen: set[int]) -> Any:
        rows = self.memory.run(multipart.parts(upload, 0, 10))
        picked = [row for row in rows if row.number in chosen]
        try:
            made = self.memory.run(multipart.complete_upload(upload, picked, new(), None))
        except NoSuchUpload:
            assert upload.id not in self.open
            return multiple()
        if upload.id in self.open:
            parts = self.parts.pop(upload.id)
            self.open.remove(upload.id)
            self.pieces[upload.id] = [name for row in picked for name in parts[row.number] or [""]]
            self.current[upload.key] = (made.seq, f"{PIECES}{upload.id}")
        return made.seq

    @rule(upload=uploads)
    def complete_with_a_replaced_part(self, upload: Upload) -> None:
        if upload.id in self.open and self.parts[upload.id]:
            row = self.memory.run(multipart.parts(upload, 0, 1))[0]
            try:
                self.memory.run(multipart.complete_upload(upload, [row._replace(etag="other")], new(), None))
            except InvalidPart:
                return
            raise AssertionError("completed with a part that is not there")

    @rule(upload=uploads)
    def abort(self, upload: Upload) -> None:
        try:
            self.memory.run(multipart.abort_upload(upload))
        except NoSuchUpload:
            assert upload.id not in self.open
        else:
            self.open.remove(upload.id)

    @rule(upload=consumes(uploads))
    def forget_an_upload(self, upload: Upload) -> None:
        """So that rules do not only meet ended ones."""

    @rule(limit=st.integers(1, 4))
    def expand(self, limit: int) -> None:
        for entry in self.queue():
            if entry.body.startswith(PIECES):
                number = int(entry.body.removeprefix(PIECES))
                left = limit - len(self.pieces.get(number, [])[:limit])
                gone = self.memory.run(multipart.expand_discard(entry, limit))
                self.pieces[number] = self.pieces.get(number, [])[limit:]
                for part_number in sorted(self.parts.get(number, {}))[:left]:
                    del self.parts[number][part_number]
                if gone:
                    assert not self.pieces.pop(number)
                    assert not self.parts.pop(number, {})
                return

    @rule()
    def take_away(self) -> None:
        blobs = [entry for entry in self.queue() if not entry.body.startswith(PIECES)]
        self.memory.run(discards.forget_discards([(entry.id, 0, 0) for entry in blobs]))
        self.taken_away.update(entry.body for entry in blobs)

    def queue(self) -> list[QueuedDiscard]:
        return self.memory.run(discards.discards(0, 10_000))

    @invariant()
    def a_blob_is_queued_exactly_when_no_row_holds_it(self) -> None:
        held = {body for _, body in self.current.values() if not body.startswith(PIECES)}
        held.update(name for blobs in self.pieces.values() for name in blobs)
        held.update(name for parts in self.parts.values() for blobs in parts.values() for name in blobs)
        queued = [entry.body for entry in self.queue() if not entry.body.startswith(PIECES)]
        assert len(queued) == len(set(queued))
        assert set(queued) == self.blobs - held - self.taken_away
        assert not held & self.taken_away

    @invariant()
    def a_body_of_pieces_is_queued_exactly_when_no_version_has_it(self) -> None:
        bodies = {body for _, body in self.current.values()}
        numbers = {*self.pieces, *self.parts} - self.open
        unheld = {f"{PIECES}{number}" for number in numbers} - bodies
        assert {entry.body for entry in self.queue() if entry.body.startswith(PIECES)} == unheld

    @invariant()
    def the_counts_are_true(self) -> None:
        assert self.memory.run(reference_queries.wrong_refcounts()) == []
        blobs = sorted(self.blobs - self.taken_away)
        assert self.memory.run(reference_queries.referenced(blobs, 0)) == set(blobs)


CountedBlobs.TestCase.settings = settings(
    max_examples=sized(100, 5000), stateful_step_count=40, deadline=None, print_blob=True
)
TestCountedBlobs = CountedBlobs.TestCase
