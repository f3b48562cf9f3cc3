"""Counted blobs: whatever is put, copied, completed, deleted and collected, in two processes that may die anywhere,
every row's bytes are there, and what no row holds is not.

Rows are compared with a model (`counted_model`) after each step, the store's disk whenever nothing is under way. All of
it goes through `Store` and `Driver`, so that it holds for every layout.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.objects.conditions import Conditions
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.store.counted_model import Body, Extent, Name, State, digest, written
from tests.unit.store.counted_worker import Died, Refused, Worker
from tests.unit.store.site import opened, prepare

pytestmark = pytest.mark.slow

NAMES = st.sampled_from([("one", "a"), ("one", "b"), ("two", "a")])
SIZES = st.sampled_from([0, 1, 5000, 5000, 200_000])
"""Bytes of a body: none, and on both sides of what goes into a pack."""
NUMBERS = st.integers(1, 3)
PICK = st.integers(0, 5)
WHERE = st.integers(0, 2)
"""The worker that gets the request; 2: the second, while the first one runs its jobs."""
PACK = 30_000
CRASH = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 6, 8])
"""At which crash point it dies; most operations have fewer. 0: it lives."""
CONDITION = st.sampled_from([None, None, None, Conditions(if_match="no such etag")])
Span = tuple[float, float] | None
SPAN: st.SearchStrategy[Span] = st.one_of(st.none(), st.tuples(st.floats(0, 1), st.floats(0, 1)))
"""Of a range: where it begins in the object, and how much of the rest it takes."""
PART = st.tuples(NUMBERS, SIZES, SPAN)
LEFT_OUT = st.sets(NUMBERS, max_size=2)
"""Parts that Complete does not name, unless none would be left."""
ROUNDS = 6
"""Of jobs, after which compaction has nothing more to do."""
RARELY = st.integers(0, 9).map(lambda number: number == 9)
BEFORE = ("put.", "store.durable")
"""Crash points so named are passed before anything is committed."""
AFTER = "store.committed"


class CountedBlobs(RuleBasedStateMachine):
    """`template` is a prepared store with two buckets; each run begins with a copy."""

    def __init__(self, template: Path) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="counted-", dir=template.parent))
        shutil.copytree(template, self.directory, dirs_exist_ok=True)
        self.state = State()
        self.workers: list[Worker] = []
        self.random = random.Random(0)
        self.now = 0
        self.reading: dict[int, tuple[int, int, str]] = {}
        """Worker, begin and digest of each reader."""
        self.uploads: list[tuple[Upload, Name]] = []
        """Also those that have ended."""
        self.mortal = False

    @initialize(durability=st.sampled_from(["relaxed", "relaxed", "full"]), mortal=st.booleans(), holes=RARELY)
    def start(self, durability: str, mortal: bool, holes: bool) -> None:
        """When nobody dies every dead record must be counted; so that half of the runs looks closer."""
        self.mortal = mortal
        made = make_settings(self.directory, durability=durability).model_copy(update={"pack_size": PACK})
        self.workers = [Worker(made, holes=holes), Worker(made, holes=holes)]
        self.put(0, 0, ("one", "a"), 200_000, False)
        self.put(1, 0, ("one", "b"), 5000, False)

    def teardown(self) -> None:
        try:
            if self.workers:
                self.finish()
        finally:
            for worker in self.workers:
                worker.stop()
            shutil.rmtree(self.directory)

    # how a step is run

    def run(
        self, where: int, crash: int, states: Sequence[State], command: str, *arguments: object, refused: str = ""
    ) -> None:
        """Run an operation after which one of `states` must be found, or (it died on its way) the one before.

        `refused` is the name of the error that must come instead, and then nothing changes.
        """
        before = self.state
        if refused:
            states = [before]
        died, raised = self.ask(where, crash, command, *arguments)
        assert died or raised == refused
        if died.startswith(BEFORE):
            states = [before]
        elif died and died != AFTER:
            states = [*states, before]
        self.settle(states)

    def ask(self, where: int, crash: int, command: str, *arguments: object) -> tuple[str, str]:
        """The point at which the worker died, and the error that the operation raised; empty if it did not."""
        self.now += 1
        beside, where = where == 2, min(where, 1)
        if beside:
            self.workers[0].send("jobs", self.now, self.oldest(), True)
        try:
            self.workers[where].ask(command, *arguments, crash=crash if self.mortal else 0)
        except Refused as error:
            return "", str(error)
        except Died as error:
            event(f"died at {error}")
            self.reading = {reader: held for reader, held in self.reading.items() if held[0] != where}
            return str(error), ""
        finally:
            if beside:
                self.workers[0].receive()
        return "", ""

    def oldest(self) -> int:
        """When the oldest running request began."""
        return min((begin for _, begin, _ in self.reading.values()), default=self.now)

    def settle(self, states: Sequence[State]) -> None:
        """Look at every row, and go on from the state that is seen."""
        look = self.workers[0].ask("look")
        found = next((state for state in states if state.is_seen(look)), None)
        assert found is not None, f"{look} is none of {states}"
        self.state = found

    # objects

    @rule(where=WHERE, crash=CRASH, name=NAMES, size=SIZES, absent=RARELY)
    def put(self, where: int, crash: int, name: Name, size: int, absent: bool) -> None:
        """Of a new key or over one, or only if there is none."""
        content = self.random.randbytes(size)
        after = self.state.put(name, Body(written(content)))
        refused = "PreconditionFailed" if absent and name in self.state.objects else ""
        conditions = Conditions(if_none_match=True) if absent else None
        self.run(where, crash, [after], "put", name, content, conditions, refused=refused)

    @rule(where=WHERE, crash=CRASH, pick=PICK, name=NAMES, condition=CONDITION)
    def copy(self, where: int, crash: int, pick: int, name: Name, condition: Conditions | None) -> None:
        """To another key, another bucket or itself, also of multipart objects."""
        if not self.state.objects:
            self.run(where, crash, [], "copy", name, name, None, refused="NoSuchKey")
            return
        source = self.source(pick)
        after = self.state.put(name, self.state.objects[source])
        self.run(where, crash, [after], "copy", source, name, condition, refused=self.refused(name, condition))

    def source(self, pick: int) -> Name:
        """One of the objects."""
        names = sorted(self.state.objects)
        return names[pick % len(names)]

    def refused(self, name: Name, condition: Conditions | None) -> str:
        if condition is None:
            return ""
        return "PreconditionFailed" if name in self.state.objects else "NoSuchKey"

    @rule(where=WHERE, crash=CRASH, name=NAMES, condition=CONDITION)
    def delete(self, where: int, crash: int, name: Name, condition: Conditions | None) -> None:
        after = self.state.delete([name])
        self.run(where, crash, [after], "delete", name, condition, refused=self.refused(name, condition))

    @rule(where=WHERE, crash=CRASH, bucket=st.sampled_from(["one", "two"]))
    def delete_many(self, where: int, crash: int, bucket: str) -> None:
        after = self.state.delete([(bucket, "a"), (bucket, "b")])
        self.run(where, crash, [after], "delete_many", bucket, ["a", "b", "a", "never"])

    @rule(where=WHERE, crash=CRASH, name=NAMES, to=NAMES, sizes=st.lists(SIZES, min_size=1, max_size=3))
    def race(self, where: int, crash: int, name: Name, to: Name, sizes: list[int]) -> None:
        """Puts of one key at once, and a copy of it while they run: any of them may be the last."""
        contents = [self.random.randbytes(size) for size in sizes]
        bodies = [Body(written(content)) for content in contents]
        old = self.state.objects.get(name)
        may_copy = bodies if old is None else [*bodies, old]
        states = [self.state.put(name, body) for body in bodies]
        if name != to:
            states += [state.put(to, body) for state in states for body in may_copy]
        calls: list[tuple[str, tuple[Any, ...]]] = [("put", (name, content, None)) for content in contents]
        died, _ = self.ask(where, crash, "together", [*calls, ("copy", (name, to, None))])
        if died:
            states.append(self.state)
            if old is not None:  # the copy came through and no put
                states.append(self.state.put(to, old))
        self.settle(states)

    # uploads

    @rule(where=WHERE, name=NAMES)
    def create_upload(self, where: int, name: Name) -> None:
        made: Upload = self.workers[min(where, 1)].ask("create_upload", name)
        self.uploads.append((made, name))
        self.state = self.state.open(made.id)

    def upload(self, pick: int) -> tuple[Upload, Name]:
        """One of the last uploads, open or not; from the first call on there is one."""
        if not self.uploads:
            self.create_upload(0, ("one", "a"))
        return self.uploads[-1 - pick % min(len(self.uploads), 3)]

    @rule(where=WHERE, crash=CRASH, pick=PICK, number=NUMBERS, size=SIZES)
    def put_part(self, where: int, crash: int, pick: int, number: int, size: int) -> None:
        """Also a part that was there, and of an upload that has ended."""
        upload, _ = self.upload(pick)
        content = self.random.randbytes(size)
        self.run_part(where, crash, upload, number, written(content), "put_part", upload, number, content)

    def run_part(
        self, where: int, crash: int, upload: Upload, number: int, extents: tuple[Extent, ...], *command: Any
    ) -> None:
        if upload.id in self.state.parts:
            self.run(where, crash, [self.state.put_part(upload.id, number, extents)], *command)
        else:
            self.run(where, crash, [], *command, refused="NoSuchUpload")

    @rule(where=WHERE, crash=CRASH, pick=PICK, number=NUMBERS, source=PICK, span=SPAN)
    def copy_part(self, where: int, crash: int, pick: int, number: int, source: int, span: Span) -> None:
        """Of a whole object, or a range of it that may begin and end in the middle of its pieces."""
        if not self.state.objects:
            return
        upload, _ = self.upload(pick)
        name = self.source(source)
        body = self.state.objects[name]
        offset, length = 0, len(body.content)
        if span and length:
            offset = min(int(length * span[0]), length - 1)
            length = max(int((length - offset) * span[1]), 1)
        extents = body.slice(offset, length)
        self.run_part(where, crash, upload, number, extents, "copy_part", name, upload, number, offset, length)

    @rule(where=WHERE, crash=CRASH, pick=PICK, left_out=LEFT_OUT, condition=CONDITION)
    def complete(self, where: int, crash: int, pick: int, left_out: set[int], condition: Conditions | None) -> None:
        """With some of the parts that have bytes (S3 takes an empty one only as the last)."""
        upload, name = self.upload(pick)
        parts = self.state.parts.get(upload.id)
        if parts is None:
            self.run(where, crash, [], "complete", upload, [], condition, refused="NoSuchUpload")
            return
        whole = [number for number, extents in parts.items() if extents]
        numbers = [number for number in whole if number not in left_out] or whole
        if numbers:
            after = self.state.complete(upload.id, name, numbers)
            refused = self.refused(name, condition)
            self.run(where, crash, [after], "complete", upload, numbers, condition, refused=refused)

    @rule(where=WHERE, crash=CRASH, name=NAMES, parts=st.lists(PART, min_size=1, max_size=4), left_out=LEFT_OUT)
    def make_object(
        self, where: int, crash: int, name: Name, parts: list[tuple[int, int, Span]], left_out: set[int]
    ) -> None:
        """A whole upload, one after the other; of parts that are written and parts that are copied."""
        self.create_upload(where, name)
        for number, size, span in parts:
            if span is None:
                self.put_part(where, 0, 0, number, size)
            else:
                self.copy_part(where, 0, 0, number, size, span)
        self.complete(where, crash, 0, left_out, None)

    @rule(where=WHERE, crash=CRASH, pick=PICK)
    def abort(self, where: int, crash: int, pick: int) -> None:
        upload, _ = self.upload(pick)
        refused = "" if upload.id in self.state.parts else "NoSuchUpload"
        self.run(where, crash, [self.state.end(upload.id)], "abort", upload, refused=refused)

    # readers, garbage, crashes

    @rule(where=WHERE, pick=PICK)
    def begin_reading(self, where: int, pick: int) -> None:
        """A request that has found its row and reads it later."""
        if self.state.objects:
            name = self.source(pick)
            self.now += 1
            where = min(where, 1)
            self.workers[where].ask("begin_reading", self.now, name)
            self.reading[self.now] = (where, self.now, digest(self.state.objects[name].content))

    @rule()
    def end_reading(self) -> None:
        """The oldest request comes to its end."""
        if self.reading:
            reader, (where, _, wanted) = next(iter(self.reading.items()))
            del self.reading[reader]
            assert self.workers[where].ask("end_reading", reader) == wanted

    @rule(crash=CRASH, seconds=st.integers(1, 3), check=RARELY)
    def collect(self, crash: int, seconds: int, check: bool) -> None:
        """A round of the elected worker's jobs, some time after the one before. fsck may always run."""
        self.now += 1000 * seconds
        self.run(0, crash, [self.state], "jobs", self.now, self.oldest(), True)
        if check:
            assert self.workers[1].ask("complaints")[0] == ""

    @rule(where=WHERE, pick=PICK, size=SIZES, waits=st.lists(st.integers(1, 2), min_size=1, max_size=3))
    def read_slowly(self, where: int, pick: int, size: int, waits: list[int]) -> None:
        """What a request has found is replaced and collected before it reads."""
        if not self.state.objects:
            return
        self.begin_reading(where, pick)
        self.put(where, 0, self.source(pick), size, False)
        for seconds in waits:
            self.collect(0, seconds, False)
        while self.reading:
            self.end_reading()

    @rule(where=WHERE, crash=CRASH, name=NAMES, fillers=st.integers(2, 6), copies=st.lists(NAMES, max_size=2))
    def fill_pack(self, where: int, crash: int, name: Name, fillers: int, copies: list[Name]) -> None:
        """A pack of which little lives and is copied, so that compaction moves it."""
        spare = ("two", "b")
        self.put(where, 0, name, 5000, False)
        source = sorted(self.state.objects).index(name)
        for _ in range(fillers):
            self.put(where, 0, spare, 5000, False)
        for other in copies:
            self.copy(where, 0, source, other, None)
        self.delete(where, 0, spare, None)
        self.restart(min(where, 1))
        for _ in range(4):
            self.collect(crash, 3, False)

    @rule(where=st.integers(0, 1))
    def restart(self, where: int) -> None:
        """In order, so that its packs are closed."""
        self.workers[where].stop()
        self.reading = {reader: held for reader, held in self.reading.items() if held[0] != where}

    def finish(self) -> None:
        """When nobody reads, and all is swept and collected, only what rows hold is there, rightly counted.

        Records that no row holds may stay in their packs as long as less would come back than is moved; they are
        counted dead, but for those over which a process died.
        """
        while self.reading:
            self.end_reading()
        worker, other = self.workers
        if other.runs:
            other.ask("jobs", self.now, self.now, False)
        worker.ask("jobs", self.now, self.now, True)
        other.stop()
        for _ in range(2):  # what compaction moves to a pack of its own may die there
            worker.stop()  # every pack is closed
            rounds = 0
            while rounds < ROUNDS or worker.ask("waiting"):
                rounds += 1
                self.now += 20_000
                worker.ask("jobs", self.now, self.now, True)
        self.settle([self.state])
        holders = self.state.holders()
        held = {body for body in holders if isinstance(body, int)}
        files, packed = worker.ask("on_disk")
        assert files <= held <= files | packed
        assert held or not packed or self.mortal
        assert worker.ask("counted") == {body: count for body, count in holders.items() if count > 1}
        complaints, uncounted = worker.ask("complaints")
        assert complaints == ""
        assert not uncounted or self.mortal


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared store."""
    path = tmp_path_factory.mktemp("counted") / "template"
    prepare(make_settings(path))
    return path


async def test_every_row_has_its_bytes_and_nothing_else_is_left(template: Path) -> None:
    async with opened(make_settings(template)) as store:
        for name in ("one", "two"):
            await store.index.create_bucket(name, "owner", "us-east-1", 10)
    run_state_machine_as_test(
        lambda: CountedBlobs(template),
        settings=settings(
            max_examples=sized(8, 1000),
            stateful_step_count=sized(50, 100),
            deadline=None,
            # it takes minutes to make an example shorter
            phases=sized((Phase.reuse, Phase.generate), tuple(Phase)),
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
