"""What a ledger and a last look together prove: what is lost, wrong, or a ghost."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from tests.reliability.lab.calls import Caller, Wire, Wrong
from tests.reliability.lab.checkers import listings, registers, versions
from tests.reliability.lab.checkers.histories import ABSENT, Kind, Operation, Outcome
from tests.reliability.lab.checkers.registers import Verdict
from tests.reliability.lab.checkers.versions import Version
from tests.reliability.lab.clients import list_all
from tests.reliability.lab.ledger import Finding, Ledger
from tests.reliability.lab.plan import AGING, LOCKED, VERSIONED
from tests.support.waiting import eventually

EARLY_SECONDS = 0.1
"""The clocks of LastModified are of milliseconds, and another one than ours."""
READ_VERSIONS = 10
"""Of each bucket, besides those that are locked."""
DUE = f"{AGING}/due/"
LOOK_SECONDS = 60.0


class Remains(NamedTuple):
    """What an episode leaves behind, to be found again at the end of the trial."""

    states: dict[str, str]
    """ETags by key."""
    versions: dict[str, list[Version]]
    due: tuple[str, ...]


class Look:
    """The last look at what clients did, through every gateway in turn."""

    def __init__(self, endpoints: list[str], ledger: Ledger) -> None:
        self._ledger = ledger
        self._wire = Wire(endpoints)
        self._caller = Caller(self._wire, ledger.bodies, "the last look")
        self._turn = 0

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    def gateway(self) -> int:
        """The next one's number."""
        self._turn += 1
        return self._turn % self._wire.gateways

    def read(self, key: str) -> Operation:
        """Read until there is an answer."""

        def answered() -> Operation | None:
            made = self._caller.read(self.gateway(), key)
            return made if made.outcome is Outcome.DONE else None

        return eventually(answered, f"an answer about {key}", LOOK_SECONDS)

    def listing(self, bucket: str, prefix: str) -> listings.Listing:
        """List until there is an answer."""
        return eventually(
            lambda: list_all(self._wire, self.gateway(), bucket, prefix), f"a listing of {bucket}", LOOK_SECONDS
        )

    def versions(self, bucket: str, prefix: str) -> dict[str, list[Version]]:
        """All versions and delete markers by key, the newest first."""
        found: dict[str, list[Version]] = defaultdict(list)
        marker = ""
        while True:
            where = f"{bucket}?{marker}max-keys=200&prefix={_escaped(prefix)}&versions="
            page = eventually(lambda where=where: self._page(where), f"versions of {bucket}", LOOK_SECONDS)
            for entry in page:
                if entry.tag in ("Version", "DeleteMarker"):
                    one = {child.tag: child.text or "" for child in entry}
                    made = Version(
                        one["VersionId"], one.get("ETag", "").strip('"'), one["IsLatest"] == "true", one["LastModified"]
                    )
                    found[f"{bucket}/{one['Key']}"].append(made)
            if page.findtext("IsTruncated") != "true":
                return found
            key, version = page.findtext("NextKeyMarker", ""), page.findtext("NextVersionIdMarker", "")
            marker = f"key-marker={_escaped(key)}&version-id-marker={version}&"

    def _page(self, where: str):  # type: ignore[no-untyped-def]  # an Element, or None
        answer = self._wire.call(self.gateway(), "GET", where)
        if answer.status in (-1, 0, 503):
            return None
        if answer.status != 200:
            raise Wrong(f"GET {where}: {answer.status} {answer.body[:300]!r}")
        return answer.tree()


def _escaped(text: str) -> str:
    return text.replace("/", "%2F")


def judge(ledger: Ledger, look: Look, prefix: str, buckets: tuple[str, ...]) -> tuple[list[Finding], Remains]:
    """Look at everything once more, and check all of it. Nobody else may change anything meanwhile."""
    found = list(ledger.findings)
    due = {key: history for key, history in ledger.histories.items() if key.startswith(DUE)}
    registers_of = {key: history for key, history in ledger.histories.items() if key not in due}
    try:
        for key, history in registers_of.items():
            history.append(look.read(key))
        for bucket in buckets:
            if bucket != AGING:
                ledger.listings.append((f"{bucket}/{prefix}", look.listing(bucket, prefix)))
        seen = {
            key: entries
            for bucket in (VERSIONED, LOCKED)
            if bucket in buckets
            for key, entries in look.versions(bucket, prefix).items()
        }
        found += _check_versions(ledger, look, seen, {bucket for bucket in buckets if bucket in (VERSIONED, LOCKED)})
    except (AssertionError, OSError) as error:
        found.append(Finding("lost", f"the last look: {error}"))
        seen = {}
    found += _check_registers(registers_of)
    found += _check_listings(ledger)
    found += list(_check_due(ledger, due))
    states = {key: history[-1].value for key, history in registers_of.items() if history}
    return found, Remains(states, seen, tuple(ledger.due))


def _check_registers(histories: dict[str, list[Operation]]) -> Iterator[Finding]:
    for key, history in histories.items():
        verdict = registers.check(history)
        if not verdict:
            lines = "\n    ".join(map(described, sorted(history, key=lambda one: one.begun)))
            yield Finding(
                kind_of(verdict), f"{key}: {described(verdict.wrong)} after {set(verdict.states)}:\n    {lines}"
            )


def described(one: Operation | None) -> str:
    """An operation in one line."""
    if one is None:
        return ""
    condition = "" if one.condition is None else f" if {one.condition[:8]}"
    value = one.value[:8] or "nothing"
    return f"{one.begun:.3f}-{one.ended:.3f} {one.who} {value}{condition} {one.outcome.value} {one.version}"


def kind_of(verdict: Verdict) -> str:
    """What a history that cannot be explained amounts to."""
    wrong = verdict.wrong
    if wrong is None or wrong.kind is not Kind.READ:
        return "wrong"
    if wrong.value == ABSENT:
        return "lost"
    return "ghost" if verdict.states == {ABSENT} else "wrong"


def _check_listings(ledger: Ledger) -> Iterator[Finding]:
    by_prefix: dict[str, dict[str, list[Operation]]] = {}
    for prefix, listing in ledger.listings:
        if prefix not in by_prefix:
            by_prefix[prefix] = {key: one for key, one in ledger.histories.items() if key.startswith(prefix)}
        for text in listings.faults(listing, by_prefix[prefix]):
            kind = "lost" if "not listed" in text else "ghost" if "nobody" in text else "wrong"
            yield Finding(kind, f"LIST: {text}")


def _check_versions(ledger: Ledger, look: Look, seen: dict[str, list[Version]], buckets: set[str]) -> Iterator[Finding]:
    locked: dict[str, dict[str, str]] = defaultdict(dict)
    for (key, version), etag in ledger.locked.items():
        locked[key][version] = etag
    removals = defaultdict(list)
    for one in ledger.removals:
        removals[one.key].append(one)
    keys = {key for key in ledger.histories if key.partition("/")[0] in buckets}
    for key in sorted(keys | seen.keys()):
        entries = seen.get(key, [])
        for kind, text in versions.faults(entries, ledger.histories.get(key, []), removals[key], locked[key]):
            yield Finding(kind, f"versions of {key}: {text}; listed: {[(one.id, one.etag[:8]) for one in entries]}")
    some = [(key, one) for key, entries in seen.items() for one in entries if one.etag][:READ_VERSIONS]
    some += [(key, Version(version, etag, False)) for (key, version), etag in ledger.locked.items()]
    for key, version in some:
        read = look.read(f"{key}?versionId={version.id}")
        if read.value != version.etag:
            yield Finding("wrong" if read.value else "lost", f"{key} version {version.id} reads as {read.value}")


def _check_due(ledger: Ledger, histories: dict[str, list[Operation]]) -> Iterator[Finding]:
    """Nothing that a rule takes away goes before it is due."""
    for key, history in histories.items():
        for one in history:
            due = ledger.due.get(key)
            if due is None or one.kind is not Kind.READ or one.is_open or one.value != ABSENT:
                continue
            if due.made < one.begun and one.ended < due.not_before - EARLY_SECONDS:
                yield Finding("lost", f"{key} went {due.not_before - one.ended:.1f} s before it was due")


def find_again(remains: Remains, look: Look) -> Iterator[Finding]:
    """Everything that earlier episodes left behind is still there, and what was due is gone."""
    for key, etag in remains.states.items():
        found = look.read(key).value
        if found != etag:
            kind = "lost" if not found else "ghost" if not etag else "wrong"
            yield Finding(kind, f"at the end: {key} reads as {found or 'nothing'}, no longer as {etag or 'nothing'}")
    for prefix in sorted({"/".join(key.split("/")[:2]) for key in remains.versions}):
        bucket, _, rest = prefix.partition("/")
        now = look.versions(bucket, f"{rest}/")
        for key, entries in remains.versions.items():
            if key.startswith(f"{prefix}/") and now.get(key, []) != entries:
                missing = {one.id for one in entries} - {one.id for one in now.get(key, [])}
                kind = "lost" if missing else "wrong"
                yield Finding(kind, f"at the end: versions of {key}: {now.get(key)}, no longer {entries}")
    until = time.monotonic() + LOOK_SECONDS
    left = list(remains.due)
    while left and time.monotonic() < until:
        left = [key for key in left if look.read(key).value != ABSENT]
    for key in left:
        yield Finding("ghost", f"at the end: {key} is due and still there")
