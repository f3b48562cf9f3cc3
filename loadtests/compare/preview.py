"""What a run would do: how long it takes, what it writes where, and what speaks against it."""

from __future__ import annotations

import math
import os
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.compare import cold, devices, machine
from sluice_s3.loadtests.compare.pace import measured_slowness
from sluice_s3.loadtests.compare.plan import Plan, PlanError
from sluice_s3.loadtests.compare.stores import parse_store
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, turn_seconds
from sluice_s3.loadtests.compare.watch import SPARE
from sluice_s3.storage_drivers.mountinfo import mount_of

SLOW = 1.5
"""With work that takes more than so many times as long it is said that durations are shorter."""
INSPECT_SECONDS = 3.0
"""Seconds that a mount may take to say what it is."""


@dataclass
class Place:
    """Where a target's bytes would lie. Sizes are bytes, 0 where unknown; `problem` says why it cannot be measured."""

    name: str
    kind: str
    where: str = ""
    driver: str = ""
    mount: str = ""
    source: str = ""
    filesystem: str = ""
    total: int = 0
    free: int = 0
    needed: int = 0
    device: int = 0
    disks: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True)
class Preview:
    """The plan in numbers. `warnings` are reasons to doubt the result, not to refuse the run."""

    seconds: float
    repeats: int
    places: list[Place]
    scenarios: dict[str, dict[str, Any]]
    warnings: list[str] = field(default_factory=list)


def preview(plan: Plan) -> Preview:
    """Look at all targets and the machine, and write nothing. What is wrong with a target is in its place."""
    places = preview_places(plan)
    targets = len(plan.stores) * (1 + plan.direct + plan.direct_unsynced) + len(plan.endpoints)
    slowness = measured_slowness()
    seconds = plan.repeats * targets * turn_seconds(plan.scenarios, slowness)
    chosen = {
        name: {"users": one.users, "seconds": one.seconds, "bytes": one.bytes, "arguments": dict(one.arguments)}
        for name, one in plan.scenarios.items()
    }
    warnings = [*_few_repeats(plan, seconds, slowness), *look_around(plan, places)]
    seconds = min(seconds, plan.minutes * 60) if plan.minutes else seconds
    return Preview(seconds, plan.repeats, places, chosen, warnings)


def preview_places(plan: Plan) -> list[Place]:
    """Look at all targets."""
    needed = int(sum(chosen.bytes for chosen in plan.scenarios.values()) * SPARE)
    places = [_in_time(_new_place(text, "gateway"), partial(_inspect_store, text, needed)) for text in plan.stores]
    return places + [
        _in_time(_new_place(text, "endpoint"), partial(_inspect_endpoint, text)) for text in plan.endpoints
    ]


def _new_place(text: str, kind: str) -> Place:
    return Place(text.partition("=")[0], kind)


def _in_time(place: Place, look: Callable[[Place], None]) -> Place:
    """Look at a target in a thread of its own, since a mount may hang."""
    seen = replace(place)
    done: list[bool] = []

    def run() -> None:
        try:
            look(seen)
        except (PlanError, ValueError) as error:
            seen.problem = str(error).removeprefix(f"store {place.name}: ")
        except OSError as error:
            seen.problem = error.strerror or str(error)
        done.append(True)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(INSPECT_SECONDS)
    return seen if done else replace(place, problem=f"it does not answer within {INSPECT_SECONDS:g} s")


def _inspect_store(text: str, needed: int, place: Place) -> None:
    """Fill in where a store's bytes would lie. Raises PlanError, OSError."""
    store = parse_store(text)
    place.driver, place.needed = store.driver, needed
    if store.path is None:  # a mount that is made for the run
        return
    mount, space = mount_of(store.path), shutil.disk_usage(store.path)
    place.where, place.device = str(store.path), os.stat(store.path).st_dev
    place.driver = store.driver or mount.driver
    place.disks = sorted(devices.disks_of(devices.device_of(store.path)))
    place.mount, place.source, place.filesystem = mount.point, mount.source, mount.kind
    place.total, place.free = space.total, space.free
    if space.free < needed:
        place.problem = f"no space: about {needed / 1e6:,.0f} MB are written, {space.free / 1e6:,.0f} MB are free"


def _inspect_endpoint(text: str, place: Place) -> None:
    """See whether somebody listens. Raises ValueError, OSError."""
    place.where = text.partition("=")[2]
    socket.create_connection(Endpoint(place.where, "", "").address, INSPECT_SECONDS / 2).close()


def _few_repeats(plan: Plan, seconds: float, slowness: float) -> list[str]:
    if plan.repeats < LEAST_REPEATS:
        why = f"{plan.repeats} of {LEAST_REPEATS} repeats fit: without {LEAST_REPEATS} there are figures but no verdict"
        if not plan.minutes:
            return [f"{plan.repeats} of {LEAST_REPEATS} repeats are asked for: there are figures but no verdict"]
        least = seconds / plan.repeats * LEAST_REPEATS / 60
        return [f"{why}. It takes about {math.ceil(least)} min for all scenarios; those that cost most may be left out"]
    if plan.minutes and slowness > SLOW:
        return [f"as busy as it is, work takes about {slowness:.0f} times as long here: durations were shortened"]
    return []


def look_around(plan: Plan, places: list[Place] | None = None) -> list[str]:
    """Return what speaks against a result: the machine, the clock, the battery, the page cache, shared disks."""
    if places is None:
        places = preview_places(plan)
    found = [machine.busy_warning(), machine.battery_warning(), *machine.clock_warnings()]
    return [*filter(None, found), *_shared_disks(places), *_cached(plan)]


def _shared_disks(places: list[Place]) -> list[str]:
    """Return which paths lie on one device, or on devices that are parts of one disk."""
    by_device: dict[int, list[str]] = {}
    for place in places:
        if place.device and place.kind == "gateway":
            by_device.setdefault(place.device, []).append(place.name)
    found = [f"{' and '.join(names)} lie on one device" for names in by_device.values() if len(names) > 1]
    disks: dict[str, list[Place]] = {}
    for place in places:
        for disk in place.disks:
            disks.setdefault(disk, []).append(place)
    for disk, own in disks.items():
        if len({place.device for place in own}) > 1:
            found.append(f"{' and '.join(place.name for place in own)} lie on one disk ({disk})")
    return found


def _cached(plan: Plan) -> list[str]:
    """Return whether reads would come from memory."""
    most, memory = max((one.bytes for one in plan.scenarios.values()), default=0), machine.cache_bytes()
    if plan.cold:
        how = "for the whole machine (drop_caches)" if cold.can_drop() else "file by file (posix_fadvise)"
        return [f"the page cache is emptied {how} again and again: reads should come from the device, see the report"]
    if not plan.stores or not memory or most > memory:
        return []
    return [
        f"the page cache ({memory / 1e9:,.1f} GB) holds all that a scenario writes ({most / 1e9:,.1f} GB at most): "
        "reads come from memory; sluice bench --cold empties it"
    ]
