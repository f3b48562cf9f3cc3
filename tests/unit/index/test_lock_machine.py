"""A walk over everything that changes versions: no locked one is ever lost, and locked ones are the only ones kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice_s3.app.errors import BucketNotEmpty, InvalidBucketState, ObjectLocked
from sluice_s3.app.index.buckets import transactions as buckets
from sluice_s3.app.index.lifecycle import transactions as lifecycle
from sluice_s3.app.index.lifecycle.rows import LONE, OBJECT, OLDER, ExpireEntry
from sluice_s3.app.index.multipart import transactions as multipart
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, GOVERNANCE, LOCK, NONE, SETTING, Lock
from sluice_s3.app.index.objects import renames
from sluice_s3.app.index.objects import transactions as objects
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import Rename
from sluice_s3.app.index.schema.tables import ENABLED, SUSPENDED
from sluice_s3.app.index.versioning import transactions as versions
from sluice_s3.app.index.versioning.rows import Deletion
from tests.support.environment import sized
from tests.unit.index.tools import OWNER, Memory, new, part

KEYS = st.sampled_from(["a", "b"])
LOCKS = st.one_of(
    st.just(NONE),
    st.builds(Lock, st.sampled_from([GOVERNANCE, COMPLIANCE]), st.integers(1, 8), st.none() | st.booleans()),
    st.booleans().map(lambda hold: Lock(hold=hold)),
)
BEGIN = 1_000_000


class Time:
    """What the locks are judged by; a step is a unit of the retentions of this test."""

    def __init__(self) -> None:
        self.step = 0

    def now_ms(self) -> int:
        return BEGIN + self.step


def _at(lock: Lock, step: int) -> Lock:
    return lock._replace(until=BEGIN + step + lock.until) if lock.mode else lock


def _headers(lock: Lock) -> str:
    return orjson.dumps({LOCK: list(lock)} if lock != NONE else {}).decode()


class LockedVersions(RuleBasedStateMachine):
    """The model keeps each version's lock and when it was put; what it says is simpler than what it checks."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()
        self.time = Time()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(object_lock, "clock", self.time)
        made = buckets.create_bucket("b", OWNER, "r", 10, settings=f'{{"{SETTING}":[]}}', versioning=ENABLED)
        self.bucket_id = self.memory.run(made).id
        self.found: dict[tuple[str, str], Lock] = {}
        """(key, version id): lock."""
        self.bodies = 0

    def teardown(self) -> None:
        self.patch.undo()
        self.memory.close()

    def kept(self, lock: Lock, *, bypass: bool) -> bool:
        if lock.hold:
            return True
        return lock.until > self.time.now_ms() and not (bypass and lock.mode == GOVERNANCE)

    def body(self) -> str:
        self.bodies += 1
        return f"blob{self.bodies}"

    def chosen(self, data: st.DataObject) -> tuple[str, str]:
        return data.draw(st.sampled_from(sorted(self.found)))

    def refused(self, expected: bool, change: Callable[[], Any]) -> bool:
        try:
            change()
        except ObjectLocked:
            assert expected
            return True
        assert not expected
        return False

    @rule(steps=st.integers(1, 4))
    def pass_time(self, steps: int) -> None:
        self.time.step += steps

    @rule(key=KEYS, lock=LOCKS)
    def put(self, key: str, lock: Lock) -> None:
        lock = _at(lock, self.time.step)
        done = self.memory.run(objects.put_version(self.bucket_id, key, new(self.body(), headers=_headers(lock)), None))
        self.found[key, done.version_id] = lock

    @precondition(lambda self: self.found)
    @rule(key=KEYS, lock=LOCKS, data=st.data())
    def copy(self, key: str, lock: Lock, data: st.DataObject) -> None:
        lock = _at(lock, self.time.step)
        source = self.memory.run(objects.version(self.bucket_id, *self.chosen(data)))
        assert source is not None
        made = new("", headers=_headers(lock))
        done = self.memory.run(objects.copy_version(source.seq, self.bucket_id, key, made, None))
        self.found[key, done.version_id] = lock

    @rule(key=KEYS, lock=LOCKS)
    def complete(self, key: str, lock: Lock) -> None:
        lock = _at(lock, self.time.step)
        upload = self.memory.run(multipart.create_upload(self.bucket_id, key, "{}", "", "", "", OWNER))
        self.memory.run(multipart.put_part(upload, part(1, self.body())))
        parts = self.memory.run(multipart.parts(upload, 0, 10))
        done = self.memory.run(multipart.complete_upload(upload, parts, new("", headers=_headers(lock)), None))
        self.found[key, done.version_id] = lock

    @rule(key=KEYS, many=st.booleans())
    def delete(self, key: str, many: bool) -> None:
        if many:
            self.memory.run(objects.delete_versions(self.bucket_id, [Deletion(key, None, Conditions(), True)]))
        else:
            self.memory.run(objects.delete_version(self.bucket_id, key, None, None, True))

    @precondition(lambda self: self.found)
    @rule(data=st.data(), bypass=st.booleans())
    def remove(self, data: st.DataObject, bypass: bool) -> None:
        which = self.chosen(data)
        removal = objects.delete_version(self.bucket_id, *which, None, bypass)
        if not self.refused(self.kept(self.found[which], bypass=bypass), lambda: self.memory.run(removal)):
            del self.found[which]

    @precondition(lambda self: self.found)
    @rule(data=st.data(), bypass=st.booleans())
    def remove_several(self, data: st.DataObject, bypass: bool) -> None:
        which = data.draw(st.lists(st.sampled_from(sorted(self.found)), min_size=1, max_size=3, unique=True))
        entries = [Deletion(*one, Conditions(), bypass) for one in which]
        for one, done in zip(which, self.memory.run(objects.delete_versions(self.bucket_id, entries)), strict=True):
            assert isinstance(done, ObjectLocked) == self.kept(self.found[one], bypass=bypass)
            if not isinstance(done, ObjectLocked):
                del self.found[one]

    @precondition(lambda self: self.found)
    @rule(data=st.data(), lock=LOCKS, bypass=st.booleans())
    def retain(self, data: st.DataObject, lock: Lock, bypass: bool) -> None:
        which = self.chosen(data)
        old = self.found[which]
        lock = _at(lock, self.time.step)._replace(hold=old.hold)
        weaker = old.until > self.time.now_ms() and not (lock.mode == old.mode and lock.until >= old.until)
        expected = weaker and (old.mode == COMPLIANCE or not bypass)
        if not self.refused(expected, lambda: self._renew(which, lock, bypass)):
            self.found[which] = lock

    @precondition(lambda self: self.found)
    @rule(data=st.data(), hold=st.booleans())
    def hold(self, data: st.DataObject, hold: bool) -> None:
        which = self.chosen(data)
        lock = self.found[which]._replace(hold=hold)
        self._renew(which, lock, False)
        self.found[which] = lock

    @rule(kinds=st.sets(st.sampled_from([OBJECT, OLDER, LONE]), min_size=1))
    def expire(self, kinds: set[tuple[int, ...]]) -> None:
        """All that lifecycle rules could ask for: a locked version stays, though a marker may hide it."""
        rows = self.memory.rows("SELECT key, version_id, seq, state, etag FROM versions")
        entries = [
            ExpireEntry(key, version_id, seq, kind)
            for key, version_id, seq, state, _ in rows
            for kind in sorted(kinds)
            if state in kind
        ]
        ((setting,),) = self.memory.rows("SELECT settings FROM buckets")
        done = self.memory.run(lifecycle.expire(self.bucket_id, setting, entries))
        assert done is not None
        for entry, went in zip(entries, done, strict=True):
            which = (entry.key, entry.version_id)
            if entry.states == OLDER and which in self.found:
                assert went != self.kept(self.found[which], bypass=False)
                if went:
                    del self.found[which]

    @rule(key=KEYS)
    def rewrite(self, key: str) -> None:
        """What versions are not made for is refused where they are kept."""
        with pytest.raises(InvalidBucketState):
            self.memory.run(renames.rename_object(self.bucket_id, Rename(key, "c")))

    def _renew(self, which: tuple[str, str], lock: Lock, bypass: bool) -> None:
        version = self.memory.run(objects.version(self.bucket_id, *which))
        assert version is not None
        place = (self.bucket_id, which[0], version.seq)
        self.memory.run(objects.set_headers(*place, _headers(lock), bypass))

    @rule()
    def suspend(self) -> None:
        with pytest.raises(InvalidBucketState):
            self.memory.run(versions.set_versioning(self.bucket_id, SUSPENDED))

    @precondition(lambda self: self.found)
    @rule()
    def delete_bucket(self) -> None:
        with pytest.raises(BucketNotEmpty):
            self.memory.run(buckets.delete_bucket(self.bucket_id))

    @invariant()
    def all_are_there(self) -> None:
        rows = self.memory.rows("SELECT key, version_id, headers, body FROM versions WHERE etag != ''")
        assert {(key, version_id): object_lock.lock_of(headers) for key, version_id, headers, _ in rows} == self.found
        gone = {body for (body,) in self.memory.rows("SELECT body FROM discards")}
        assert gone.isdisjoint(body for *_, body in rows)


TestLockedVersions = LockedVersions.TestCase
TestLockedVersions.settings = settings(max_examples=sized(40, 2000), stateful_step_count=sized(30, 60), deadline=None)
