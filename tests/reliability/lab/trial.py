"""One trial: a set-up is built, the faults of a seed strike it under load, and everything is checked."""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path

from tests.reliability.lab import plan
from tests.reliability.lab.calls import Caller, Wire
from tests.reliability.lab.checkers.histories import Outcome
from tests.reliability.lab.clients import Crowd
from tests.reliability.lab.faults import FAULTS, Scene
from tests.reliability.lab.ledger import Finding, Ledger
from tests.reliability.lab.plan import Episode
from tests.reliability.lab.setups import DAY_SECONDS, Setup, Site, built
from tests.reliability.lab.table import END, Row
from tests.reliability.lab.verdicts import Look, Remains, find_again, judge

READY_SECONDS = 90.0
"""In which a gateway must serve again once a fault is over: of a busy machine."""
BEFORE_SECONDS = 60.0
DAMAGE = ("missing", "short", "miscounted", "overcounted", "newest")
"""What `sluice fsck` must not find. Blobs that no row refers to are no damage after a rebuild (its page says so)."""

Report = Callable[[Row], None]


def faults_of(setup: Setup, wanted: Iterable[str] = ()) -> list[str]:
    """The faults that can be brought to a set-up, of those that are wanted. Raises ValueError for an unknown one."""
    if unknown := set(wanted) - FAULTS.keys():
        raise ValueError(f"no fault {', '.join(sorted(unknown))} (there are {', '.join(FAULTS)})")
    return [name for name, one in FAULTS.items() if (not wanted or name in wanted) and one.strikes(setup)]


def run_trial(
    setup: Setup,
    seed: int,
    faults: Sequence[str],
    directory: Path,
    report: Report,
    *,
    before: int,
    hold: float,
    size: str = "",
) -> list[Row]:
    """Build the set-up, and let each of the faults strike it once. `size` is only for the command that replays it."""
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        report(row)

    left: Sequence[Episode] = plan.episodes(seed, setup.name, faults, setup.buckets, before, hold)
    try:
        while left:
            place = directory / str(len(left))
            place.mkdir()
            with built(setup, place) as site:
                left = _strike_all(site, left, add, seed, size)
    except Exception:  # the next set-up may do better
        add(_ended(Row(seed, setup.name, END, size)))
    return rows


def _strike_all(site: Site, episodes: Sequence[Episode], report: Report, seed: int, size: str) -> Sequence[Episode]:
    """One episode after the other, and the end; return those that are left when the site does not come back."""
    remains: list[Remains] = []
    sources = _make_sources(site)
    for number, episode in enumerate(episodes, 1):
        row = Row(seed, site.setup.name, episode.fault, size)
        logged = site.log_sizes()
        try:
            remains.append(run_episode(site, episode, row, sources))
        except Exception:  # nothing more can be said of a site that did not come back
            row.log = site.log_since({})
            report(_ended(row))
            return episodes[number:]
        if row.findings:
            row.log = site.log_since(logged)
        report(row)
    last = Row(seed, site.setup.name, END, size)
    _end(site, remains, sources, last)
    report(last)
    return ()


def _ended(row: Row) -> Row:
    row.findings.append(Finding("wrong", f"the trial ended: {traceback.format_exc()}"))
    return row


def run_episode(site: Site, episode: Episode, row: Row, sources: Ledger) -> Remains:
    """Load, fault, load, and the last look."""
    ledger = Ledger()
    ledger.bodies, ledger.sources = sources.bodies, sources.sources
    scene = Scene(site, random.Random(episode.seed), ledger)
    course = FAULTS[episode.fault].course(scene)
    next(course)
    crowd = scene.crowd = Crowd(episode, site.endpoints, ledger, DAY_SECONDS)
    if episode.moves:
        _begin_move(site, scene.rng)
    began = time.monotonic()
    crowd.start()
    try:
        if not crowd.wait_for(episode.before, BEFORE_SECONDS):
            ledger.find("wrong", f"only {ledger.answered} of {episode.before} operations before the fault")
        struck = time.monotonic()
        next(course, None)
        crowd.wait(episode.hold)
        next(course, None)
        healed = time.monotonic()
        if not _serves(site, crowd, episode.after):
            ledger.find("wrong", f"does not serve {READY_SECONDS:.0f} s after the fault")
    finally:
        crowd.stop()
        ended = time.monotonic()
        for _ in course:
            pass
    look = Look(site.endpoints, ledger)
    found, remains = judge(ledger, look, f"{episode.fault}/", site.setup.buckets)
    look.close()
    row.findings += found
    row.operations, row.seconds = ledger.answered, ended - began
    changes = sorted(one for one in ledger.changes if one > struck)
    row.unavailable = max((b - a for a, b in pairwise([struck, *changes, ended])), default=0.0)
    row.back = max(min((one for one in changes if one > healed), default=inf) - healed, 0.0)
    return remains


def _serves(site: Site, crowd: Crowd, more: int) -> bool:
    until = time.monotonic() + READY_SECONDS
    while not site.is_ready() and time.monotonic() < until:
        crowd.wait(0.1)
    return crowd.wait_for(more, max(until - time.monotonic(), 5.0))


def _make_sources(site: Site) -> Ledger:
    ledger = Ledger()
    caller = Caller(Wire(site.endpoints), ledger.bodies, "maker")
    for number in range(plan.SOURCES):
        size = plan.LARGE if not number else 900 * number
        key = f"{site.setup.buckets[0]}/sources/{number}"
        made = caller.put(0, key, f"source {number} ".encode().ljust(size, b"."))
        assert made.outcome is Outcome.DONE, "a new gateway takes objects"
        ledger.sources[key] = made.value
    caller.wire.close()
    return ledger


def _begin_move(site: Site, rng: random.Random) -> None:
    """A bucket goes to the other store; that it is busy with the move before is no finding."""
    bucket, store = rng.choice((plan.PLAIN, plan.VERSIONED)), rng.choice(("default", "other"))
    site.gateways[0].run("bucket", "move", bucket, store, "--no-wait", check=False)


def _end(site: Site, remains: Sequence[Remains], sources: Ledger, row: Row) -> None:
    """All that was left behind is there, also after a restart, index and stores agree, and all bodies read."""
    began = time.monotonic()
    look = Look(site.endpoints, sources)
    try:
        for one in remains:
            row.findings += find_again(one, look)
        site.stop()
        site.start()
        for one in remains:
            row.findings += find_again(one._replace(versions={}, due=()), look)
        row.findings += list(_check_books(site))
        row.findings += list(_check_bodies(site))
    except Exception:
        row.findings.append(Finding("wrong", f"the end: {traceback.format_exc()}"))
    look.close()
    row.seconds = time.monotonic() - began


def _check_books(site: Site) -> Iterator[Finding]:
    """Index and stores agree, once what died was swept."""

    def disagreement() -> dict[str, object]:
        report = site.gateways[0].run("fsck", "--json", check=False)
        if not report.stdout.startswith("{"):
            return {"fsck": report.stderr}
        found = json.loads(report.stdout)
        return {name: found[name] for name in DAMAGE if found[name]}

    until = time.monotonic() + READY_SECONDS
    while found := disagreement():
        if time.monotonic() > until:
            yield Finding("lost" if "missing" in found else "wrong", f"fsck: {json.dumps(found)[:3000]}")
            return
        time.sleep(1)


def _check_bodies(site: Site) -> Iterator[Finding]:
    """Every body that a row holds reads as it was written, also those of older versions."""
    scrub = site.gateways[0].run("scrub", "--json", check=False)
    if scrub.returncode:
        yield Finding("lost", f"scrub: {scrub.stdout[:3000]} {scrub.stderr}")
