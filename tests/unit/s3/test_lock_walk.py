"""A walk over every operation, job and command that could remove or replace a version: no locked one is ever lost.

Its requests are those of `locked_objects`; here are the jobs and the operator, on two stores, one of which archives.
`tests/unit/index/test_lock_machine.py` walks over the transactions alone.
"""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from sluice_s3.app.index.multipart.rows import PIECES
from tests.support.environment import sized
from tests.unit.s3.lock_draws import PICKS, when
from tests.unit.s3.lock_jobs import Jobs, admin, damage, sluice
from tests.unit.s3.locked_objects import DAY, Kept, LockedObjects, md5, texts

pytestmark = pytest.mark.slow

EXPIRE = """<Filter><Prefix></Prefix></Filter><Expiration><Days>1</Days></Expiration><NoncurrentVersionExpiration>
<NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration><AbortIncompleteMultipartUpload><DaysAfterInitiation>1
</DaysAfterInitiation></AbortIncompleteMultipartUpload>"""
ARCHIVE = """<Filter><ObjectSizeGreaterThan>0</ObjectSizeGreaterThan></Filter><Transition><Days>1</Days><StorageClass>
GLACIER</StorageClass></Transition><NoncurrentVersionTransition><NoncurrentDays>1</NoncurrentDays><StorageClass>GLACIER
</StorageClass></NoncurrentVersionTransition>""".replace("\n", "")
RESTORE = b"<RestoreRequest><Days>1</Days></RestoreRequest>"
REPAIR = st.integers(0, 15).map(lambda number: number == 7)
"""Seldom: fsck walks over all directories."""


class OperatedLockedObjects(LockedObjects):
    """Beside requests, whatever else reaches the data."""

    rules_put = 0

    async def open(self) -> None:
        await super().open()
        self.jobs = Jobs(self.plane)

    def sluice(self, *words: str) -> int:
        return sluice(self.directory / "sluice.toml", *words)

    def admin(self, method: str, path: str, **parameters: str) -> tuple[int, Any]:
        return self.run(admin(self.plane, method, path, **parameters))

    # life cycles

    async def _apply(self, what: str, days: int) -> None:
        """Rules are new ones each time: those of yesterday have done today's work."""
        self.rules_put += 1
        rules = f"<ID>{self.rules_put}</ID><Status>Enabled</Status>{what}"
        body = f"<LifecycleConfiguration><Rule>{rules}</Rule></LifecycleConfiguration>".encode()
        put = await self.plane.ask("PUT", "/locked", "lifecycle", body, content_md5=md5(body))
        assert put.status == 200, put
        await self.jobs.apply(lambda: self.now + days * DAY)
        assert (await self.plane.ask("DELETE", "/locked", "lifecycle")).status == 204

    @rule(days=st.integers(0, 3))
    @when(lambda self: len(self.found) > 3)
    def expire(self, days: int) -> None:
        """Rules take what is due, also when their clock believes in more days than that of locks."""
        self.run(self._apply(EXPIRE, days))
        gone = self.found.keys() - self.listed()
        assert not any(map(self.keeps, gone)), gone
        for which in gone:
            del self.found[which]

    @rule()
    @when(lambda self: len(self.found) > len(self.archived))
    def archive(self) -> None:
        """Rules give versions another class, and so another store."""
        self.run(self._apply(ARCHIVE, 3))
        self.listed()
        assert len(self.archived) == len(self.found)

    @rule(days=st.sampled_from([0, 9]))
    @when(lambda self: self.archived)
    def restore(self, days: int) -> None:
        """All that is archived comes back, and what was asked for goes again when its time is over."""
        for key, version_id in self.archived:
            answer = self.ask("POST", key, f"restore&versionId={version_id}", RESTORE)
            assert answer.status in (200, 202) or answer.code == "RestoreAlreadyInProgress", answer
        for day in {0, days}:
            self.run(self.jobs.restore(lambda day=day: self.began + day * DAY))

    # upkeep

    @rule(repair=REPAIR)
    @when(lambda self: self.found)
    def clean(self, repair: bool) -> None:
        """Garbage, compaction, a scrub, and sometimes fsck with repair."""
        self.run(self.jobs.clean(repair=repair))
        assert not self.run(self.jobs.scrub())
        self.all_are_readable()

    @rule(pick=PICKS, truly=st.booleans(), repair=REPAIR)
    @when(lambda self: self.found)
    def quarantine(self, pick: int, truly: bool, repair: bool) -> None:
        """A version that is damaged, or said to be, is not read, and is locked still; once whole, scrub lets it go."""
        which = self.chosen(pick)
        version = self.run(self.plane.index.version(self.bucket_id, *which))
        if not version.body or version.body.startswith(PIECES):
            return
        roots = {name: self.directory / name for name in self.plane.store.all}
        if truly:
            damage(self.plane.store, roots, version.body)
            assert set(self.run(self.jobs.scrub())) == {version.body}
        else:
            self.run(self.plane.index.add_quarantine(version.body, "test"))
        query = f"versionId={which[1]}"
        read = self.ask("GET", which[0], query)
        assert read.status == 503 or (read.code == "InvalidObjectState" and which in self.archived)
        kept = self.keeps(which)
        assert self.ask("DELETE", which[0], query).status == (403 if kept else 204)
        if not kept:
            del self.found[which]
        if truly and kept:
            self.run(self.jobs.clean(repair=repair))
        if truly:
            damage(self.plane.store, roots, version.body)
        self.run(self.jobs.scrub())

    # the operator

    @rule(store=st.sampled_from(["fast", "slow"]), passes=st.integers(0, 3))
    @when(lambda self: self.found)
    def move(self, store: str, passes: int) -> None:
        """The bucket goes to another store, and is asked for other things meanwhile."""
        assert self.sluice("bucket", "move", "locked", store, "--no-wait") in (0, 1)
        self.run(self.jobs.move(passes))

    @rule(what=st.sampled_from(["account, API", "account", "user"]))
    @when(lambda self: self.found)
    def purge(self, what: str) -> None:
        """Who owns locked versions, or wrote them, is to go."""
        if what == "account, API":
            assert self.admin("DELETE", f"/accounts/{self.owner_id}")[0] == 409
        elif what == "account":
            assert self.sluice("user", "remove", self.owner_id) == 4
        else:
            name = f"user{self.users}"
            for action, more in (
                ("DeleteAccessKey", {"AccessKeyId": self.user.access}),
                ("DeleteUserPolicy", {"PolicyName": "p"}),
                ("DeleteUser", {}),
            ):
                place = f"/accounts/{self.owner_id}/iam/{action}"
                assert self.admin("POST", place, UserName=name, **more)[0] == 200
            self.hire()

    @rule(how=st.sampled_from(["again", "again", "again", "rebuilt", *sized([], ["lost"])]))
    @when(lambda self: self.found)
    def restart(self, how: str) -> None:
        """The server starts again; with `rebuilt` and `lost` on an index that is made of the data, where with `lost`
        what was not waited for may be missing in the journals. What that is hangs on the moment, so that a failure may
        not come again: it is not for every run of the tests."""
        self.plane.dies = how == "lost"
        self.run(self.stack.aclose())
        if how != "again":
            shutil.rmtree(self.settings.index_path.parent)
            assert self.sluice("rebuild") in ((0,) if how == "rebuilt" else (0, 4))
        self.run(self.open())
        if how == "lost":
            self.look_again()
        if how != "again":
            self.all_are_readable()

    def look_again(self) -> None:
        """What is there, after the last second was lost: all that is locked."""
        kept = set(filter(self.keeps, self.found))
        listed = self.listed()
        assert kept <= listed
        now = {which: Kept(self.read(which), self.lock_of(which)) for which in listed}
        for which, one in self.found.items():
            assert which not in listed or now[which].body == one.body
            assert which not in kept or now[which].lock == one.lock
        self.found = now
        self.default = bool(texts(self.ask("GET", query="object-lock").body, "Mode"))
        self.hire()


TestLockedObjects = OperatedLockedObjects.TestCase
TestLockedObjects.settings = settings(
    max_examples=sized(15, 2000),
    stateful_step_count=sized(40, 60),
    deadline=None,
    database=None,
    # it takes minutes to make an example shorter
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
