"""What a run would do: how long it takes, what it writes where, and what speaks against it."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sluice_s3.loadtests.clients.http import Endpoint
from sluice_s3.loadtests.compare.plan import Plan, PlanError
from sluice_s3.loadtests.compare.run import SPARE
from sluice_s3.loadtests.compare.stores import parse_store
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, TURN_SECONDS
from sluice_s3.storage_drivers.mountinfo import mount_of

INSPECT_SECONDS = 3.0
"""Seconds that a mount may take to say what it is."""
BUSY_SHARE = 0.5
"""A machine is called busy when its load is higher than this share of its cores."""


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
    needed = int(sum(chosen.bytes for chosen in plan.scenarios.values()) * SPARE)
    places = [_in_time(_new_place(text, "gateway"), partial(_inspect_store, text, needed)) for text in plan.stores]
    places += [_in_time(_new_place(text, "endpoint"), partial(_inspect_endpoint, text)) for text in plan.endpoints]
    targets = len(plan.stores) * (1 + plan.direct + plan.direct_unsynced) + len(plan.endpoints)
    seconds = plan.repeats * targets * (TURN_SECONDS + sum(one.seconds for one in plan.scenarios.values()))
    chosen = {
        name: {"users": one.users, "seconds": one.seconds, "bytes": one.bytes, "arguments": dict(one.arguments)}
        for name, one in plan.scenarios.items()
    }
    return Preview(seconds, plan.repeats, places, chosen, _warnings(plan, places))


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
    place.mount, place.source, place.filesystem = mount.point, mount.source, mount.kind
    place.total, place.free = space.total, space.free
    if space.free < needed:
        place.problem = f"no space: about {needed / 1e6:,.0f} MB are written, {space.free / 1e6:,.0f} MB are free"


def _inspect_endpoint(text: str, place: Place) -> None:
    """See whether somebody listens. Raises ValueError, OSError."""
    place.where = text.partition("=")[2]
    socket.create_connection(Endpoint(place.where, "", "").address, INSPECT_SECONDS / 2).close()


def _warnings(plan: Plan, places: list[Place]) -> list[str]:
    found = []
    if plan.repeats < LEAST_REPEATS:
        found.append(
            f"{plan.repeats} of {LEAST_REPEATS} repeats fit: without {LEAST_REPEATS} there are figures but no verdict"
        )
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    if load > cores * BUSY_SHARE:
        found.append(f"the machine is busy: its load is {load:.1f}, with {cores} cores")
    by_device: dict[int, list[str]] = {}
    for place in places:
        if place.device and place.kind == "gateway":
            by_device.setdefault(place.device, []).append(place.name)
    found += [f"{' and '.join(names)} lie on one device" for names in by_device.values() if len(names) > 1]
    return found
