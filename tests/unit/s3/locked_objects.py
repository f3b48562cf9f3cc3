"""What clients do to a bucket with locked objects: the part of the walk over these that is requests.

Requests are real ones, signed by the account or by a user who may all but pass over a retention; what the model says of
each answer is simpler than what decides it. `test_lock_walk` has the jobs and the operator.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import tempfile
import time
from base64 import b64encode
from collections.abc import Collection
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, GOVERNANCE, Lock
from sluice_s3.app.index.object_lock.retention_clock import RetentionClock
from sluice_s3.app.store import multipart, reading
from sluice_s3.app.store.journals import wait
from tests.support.raw_http import Answer
from tests.support.signing import Key
from tests.unit.s3.lock_draws import BODIES, CALLERS, CLASSES, KEYS, LOCKS, PICKS, Who, when
from tests.unit.s3.lock_stores import HOME, THRESHOLD, prepared
from tests.unit.s3.plane import ROOT, Plane, plane

HOUR = 3_600_000
DAY = 24 * HOUR
ALL_BUT_BYPASS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
        {"Effect": "Deny", "Action": "s3:BypassGovernanceRetention", "Resource": "*"},
    ],
}
Name = tuple[str, str]
"""Key and version id."""


class Kept(NamedTuple):
    """A version of the model."""

    body: bytes
    lock: Lock


class Caller(NamedTuple):
    """Who asks, and whether with the header that passes over GOVERNANCE."""

    key: Key
    asks: bool

    @property
    def bypass(self) -> bool:
        return self.asks and self.key is ROOT

    @property
    def fields(self) -> dict[str, str]:
        return {"x_amz_bypass_governance_retention": "true"} if self.asks else {}


def md5(body: bytes) -> str:
    return b64encode(hashlib.md5(body).digest()).decode()


def iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def texts(body: bytes, name: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(re.sub(rb' xmlns="[^"]*"', b"", body)).iter(name)]


class LockedObjects(RuleBasedStateMachine):
    """`found` holds all versions that there must be, and no others but delete markers."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.directory = Path(tempfile.mkdtemp(dir=HOME, prefix="sluice-locks-"))
        self.settings = prepared(self.directory)
        self.found: dict[Name, Kept] = {}
        self.users = 0
        self.archived: list[Name] = []
        """Those that were of an archive's class when they were listed last."""
        self.began = int(time.time()) * 1000
        self.passed = self.jumped = 0
        """Milliseconds that went by, and that the wall clock was set forward besides."""
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(object_lock, "clock", RetentionClock(lambda: self.wall, lambda: self.passed))
        self.patch.setattr(wait, "FIRST_LOOK", 0.0005)
        self.patch.setattr(multipart, "MIN_PART", 1)
        self.stack = AsyncExitStack()
        self.plane: Plane
        self.run(self.open())

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    async def open(self) -> None:
        self.plane = await self.stack.enter_async_context(plane(self.settings))

    def teardown(self) -> None:
        try:
            self.all_are_readable()
        finally:
            self.run(self.stack.aclose())
            self.loop.close()
            self.patch.undo()
            shutil.rmtree(self.directory)

    # what the model says

    @property
    def wall(self) -> int:
        return self.began + self.passed + self.jumped

    @property
    def now(self) -> int:
        """A wall clock that ran ahead is not believed."""
        return min(self.wall, self.began + self.passed)

    def keeps(self, which: Name, *, bypass: bool = False) -> bool:
        lock = self.found[which].lock
        return bool(lock.hold) or (lock.until > self.now and not (bypass and lock.mode == GOVERNANCE))

    def at(self, lock: Lock) -> Lock:
        """A lock whose end is so many hours from now, and to be in the future for the request too."""
        return lock._replace(until=self.began + self.passed + lock.until * HOUR) if lock.mode else lock

    def headers(self, lock: Lock) -> dict[str, str]:
        fields = {}
        if lock.mode:
            fields = {"x_amz_object_lock_mode": lock.mode, "x_amz_object_lock_retain_until_date": iso(lock.until)}
        if lock.hold is not None:
            fields["x_amz_object_lock_legal_hold"] = "ON" if lock.hold else "OFF"
        return fields

    def retained(self) -> list[Name]:
        """Those that nothing but a retention keeps."""
        kept = ((which, one.lock) for which, one in self.found.items())
        return sorted(which for which, lock in kept if lock.until > self.now and not lock.hold)

    def chosen(self, pick: int, among: Collection[Name] | None = None) -> Name:
        """One of those, or of all."""
        names = sorted(self.found if among is None else among)
        return names[pick % len(names)]

    def ask(
        self, method: str, key: str = "", query: str = "", body: bytes = b"", *, by: Key = ROOT, **more: str
    ) -> Answer:
        path = f"/locked/{key}" if key else "/locked"
        return self.run(self.plane.ask(method, path, query, body, by, **more))

    def made(self, key: str, answer: Answer, body: bytes, lock: Lock) -> None:
        """A version was made: it has the lock that was given, else the bucket's default, which is read."""
        assert answer.status == 200, answer
        which = (key, answer.version_id)
        assert which not in self.found
        has = self.lock_of(which)
        assert has.hold == lock.hold
        if lock.mode or not self.default:
            assert has == lock
        self.found[which] = Kept(body, has)

    def lock_of(self, which: Name) -> Lock:
        version = self.run(self.plane.index.version(self.bucket_id, *which))
        assert version is not None, which
        return object_lock.lock_of(version.headers)

    @initialize(default=st.booleans())
    def begin(self, default: bool) -> None:
        assert self.run(self.plane.ask("PUT", "/plain")).status == 200
        assert self.ask("PUT", x_amz_bucket_object_lock_enabled="true").status == 200
        bucket = self.run(self.plane.bucket("locked"))
        self.bucket_id, self.owner_id = bucket.id, bucket.owner_id
        self.hire()
        self.default = False
        if default:
            self.set_default(True)
        self.put("a", b"first", Lock(COMPLIANCE, 8), "")
        self.put("b/c", b"second" * THRESHOLD, Lock(GOVERNANCE, 8), "GLACIER")
        self.run(self.plane.written())

    def hire(self) -> None:
        """Another user, who may all but pass over GOVERNANCE."""
        self.users += 1
        self.user = self.run(self.plane.user(self.owner_id, f"user{self.users}", ALL_BUT_BYPASS))

    def caller(self, who: Who) -> Caller:
        return Caller(ROOT if who.root else self.user, who.bypass)

    # time

    @rule(hours=st.integers(1, 4))
    def pass_time(self, hours: int) -> None:
        self.passed += hours * HOUR

    @rule(hours=st.sampled_from([-DAY, -HOUR, HOUR, 400 * DAY]))
    def jump(self, hours: int) -> None:
        """Somebody sets the wall clock."""
        self.jumped = hours

    # what makes versions

    @rule(key=KEYS, body=BODIES, lock=LOCKS, storage_class=CLASSES)
    def put(self, key: str, body: bytes, lock: Lock, storage_class: str) -> None:
        lock = self.at(lock)
        fields = self.headers(lock) | ({"x_amz_storage_class": storage_class} if storage_class else {})
        self.made(key, self.ask("PUT", key, body=body, content_md5=md5(body), **fields), body, lock)

    @rule(pick=PICKS, key=st.none() | KEYS, lock=LOCKS)
    @when(lambda self: self.found)
    def copy(self, key: str | None, lock: Lock, pick: int) -> None:
        """A version, also onto itself."""
        which, lock = self.chosen(pick), self.at(lock)
        source = f"locked/{quote(which[0])}?versionId={which[1]}"
        fields = {"x_amz_copy_source": source, "x_amz_metadata_directive": "REPLACE", **self.headers(lock)}
        answer = self.ask("PUT", key or which[0], **fields)
        if answer.code == "InvalidObjectState":
            assert which in self.archived
            return
        self.made(key or which[0], answer, self.found[which].body, lock)

    @rule(key=KEYS, body=BODIES, lock=LOCKS)
    def complete(self, key: str, body: bytes, lock: Lock) -> None:
        lock = self.at(lock)
        (upload,) = texts(self.ask("POST", key, "uploads", **self.headers(lock)).body, "UploadId")
        parts = ""
        for number, part in enumerate((body[:THRESHOLD], body[THRESHOLD:]), 1):
            if part:
                etag = self.ask("PUT", key, f"partNumber={number}&uploadId={upload}", part).headers["etag"]
                parts += f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
        document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        self.made(key, self.ask("POST", key, f"uploadId={upload}", document), body, lock)

    # what would replace them

    @rule(key=KEYS, what=st.sampled_from(["append", "rename", "suspend", "delete bucket"]))
    @when(lambda self: self.found)
    def refused(self, key: str, what: str) -> None:
        """What is not for buckets with locks."""
        if what == "append":
            assert self.ask("PUT", key, body=b"more", x_amz_write_offset_bytes="0").status == 501
        elif what == "rename":
            assert self.ask("PUT", "new", "renameObject", x_amz_rename_source=key).status == 501
        elif what == "suspend":
            body = b"<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>"
            assert self.ask("PUT", "", "versioning", body).code == "InvalidBucketState"
        else:
            assert self.ask("DELETE").code == "BucketNotEmpty"

    @rule(pick=PICKS, tag=st.sampled_from(["a=b", "lock=x"]))
    @when(lambda self: self.found)
    def tag(self, pick: int, tag: str) -> None:
        """Other headers in the row that holds the lock."""
        which = self.chosen(pick)
        name, _, value = tag.partition("=")
        tags = f"<Tagging><TagSet><Tag><Key>{name}</Key><Value>{value}</Value></Tag></TagSet></Tagging>"
        assert self.ask("PUT", which[0], f"tagging&versionId={which[1]}", tags.encode()).status == 200

    # what would remove them

    @rule(key=KEYS, who=CALLERS)
    def delete(self, key: str, who: Who) -> None:
        caller = self.caller(who)
        assert self.ask("DELETE", key, by=caller.key, **caller.fields).headers["x-amz-delete-marker"] == "true"

    @rule(pick=PICKS, who=CALLERS)
    @when(lambda self: self.found)
    def remove(self, pick: int, who: Who) -> None:
        which, caller = self.chosen(pick), self.caller(who)
        answer = self.ask("DELETE", which[0], f"versionId={which[1]}", by=caller.key, **caller.fields)
        assert answer.status == (403 if self.keeps(which, bypass=caller.bypass) else 204)
        if answer.status == 204:
            del self.found[which]

    @rule(pick=PICKS)
    @when(lambda self: self.retained())
    def remove_retained(self, pick: int) -> None:
        """By the account itself, with the header that passes over GOVERNANCE: only that goes."""
        which = self.chosen(pick, self.retained())
        answer = self.ask("DELETE", which[0], f"versionId={which[1]}", **Caller(ROOT, True).fields)
        assert answer.status == (403 if self.found[which].lock.mode == COMPLIANCE else 204)
        if answer.status == 204:
            del self.found[which]

    @rule(picks=st.lists(PICKS, min_size=1, max_size=4), who=CALLERS)
    @when(lambda self: self.found)
    def remove_several(self, picks: list[int], who: Who) -> None:
        which = sorted({self.chosen(pick) for pick in picks})
        caller = self.caller(who)
        each = "".join(f"<Object><Key>{key}</Key><VersionId>{one}</VersionId></Object>" for key, one in which)
        body = f"<Delete>{each}</Delete>".encode()
        answer = self.ask("POST", "", "delete", body, by=caller.key, content_md5=md5(body), **caller.fields)
        kept = {one for one in which if self.keeps(one, bypass=caller.bypass)}
        assert answer.status == 200
        assert len(texts(answer.body, "Error")) == len(kept)
        for one in set(which) - kept:
            del self.found[one]

    # what changes locks

    @rule(pick=PICKS, who=CALLERS, lock=LOCKS.filter(lambda lock: bool(lock.mode)))
    @when(lambda self: self.found)
    def retain(self, pick: int, who: Who, lock: Lock) -> None:
        which, caller = self.chosen(pick), self.caller(who)
        old = self.found[which].lock
        lock = self.at(lock)._replace(hold=old.hold)
        document = (
            f"<Retention><Mode>{lock.mode}</Mode><RetainUntilDate>{iso(lock.until)}</RetainUntilDate></Retention>"
        )
        query = f"retention&versionId={which[1]}"
        answer = self.ask("PUT", which[0], query, document.encode(), by=caller.key, **caller.fields)
        weaker = old.until > self.now and not (lock.mode == old.mode and lock.until >= old.until)
        assert answer.status == (403 if weaker and (old.mode == COMPLIANCE or not caller.bypass) else 200)
        if answer.status == 200:
            self.found[which] = self.found[which]._replace(lock=lock)

    @rule(pick=PICKS, who=CALLERS)
    @when(lambda self: self.found)
    def release(self, pick: int, who: Who) -> None:
        """An empty retention takes it away."""
        which, caller = self.chosen(pick), self.caller(who)
        query = f"retention&versionId={which[1]}"
        answer = self.ask("PUT", which[0], query, b"<Retention/>", by=caller.key, **caller.fields)
        old = self.found[which].lock
        held = old.until > self.now and (old.mode == COMPLIANCE or not caller.bypass)
        assert answer.status == (403 if held else 200)
        if answer.status == 200:
            self.found[which] = self.found[which]._replace(lock=Lock(hold=old.hold))

    @rule(pick=PICKS, hold=st.booleans())
    @when(lambda self: self.found)
    def hold(self, pick: int, hold: bool) -> None:
        which = self.chosen(pick)
        body = f"<LegalHold><Status>{'ON' if hold else 'OFF'}</Status></LegalHold>".encode()
        assert self.ask("PUT", which[0], f"legal-hold&versionId={which[1]}", body).status == 200
        kept = self.found[which]
        self.found[which] = kept._replace(lock=kept.lock._replace(hold=hold))

    @rule(default=st.booleans())
    def set_default(self, default: bool) -> None:
        """It is for new versions, and changes nothing of those that are there."""
        retention = "<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>1</Days></DefaultRetention></Rule>"
        enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>"
        body = f"<ObjectLockConfiguration>{enabled}{retention if default else ''}</ObjectLockConfiguration>".encode()
        assert self.ask("PUT", "", "object-lock", body).status == 200
        self.default = default

    # what must hold

    def listed(self) -> set[Name]:
        page = self.run(self.plane.index.list_versions(self.bucket_id, "", "", "", "", 10_000))
        entries = [entry for entry in page.entries if entry.etag]
        self.archived = [(entry.key, entry.version_id) for entry in entries if entry.storage_class == "GLACIER"]
        return {(entry.key, entry.version_id) for entry in entries}

    @invariant()
    def all_are_there(self) -> None:
        if hasattr(self, "bucket_id"):
            assert self.listed() == self.found.keys()

    def read(self, which: Name) -> bytes:
        """The bytes of a version; of one in the archive, those that lie there."""
        answer = self.ask("GET", which[0], f"versionId={which[1]}")
        if answer.code != "InvalidObjectState":
            assert answer.status == 200, answer
            return answer.body
        version = self.run(self.plane.index.version(self.bucket_id, *which))
        assert version.storage_class == "GLACIER"
        taken = bytearray()
        self.run(reading.feed_bytes(self.plane.store, version, 0, version.size, taken.extend))
        return bytes(taken)

    def all_are_readable(self) -> None:
        for which, kept in self.found.items():
            assert self.lock_of(which) == kept.lock
            assert self.read(which) == kept.body
