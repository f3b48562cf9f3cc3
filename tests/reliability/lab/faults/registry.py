"""What a fault is: a generator that strikes and heals, and the set-ups that it can be brought to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.reliability.lab.clients import Crowd
from tests.reliability.lab.ledger import Ledger
from tests.reliability.lab.setups import Setup, Site


@dataclass
class Scene:
    """What a fault acts on; `rng` decides its details. There are clients from the first yield on."""

    site: Site
    rng: random.Random
    ledger: Ledger
    crowd: Crowd | None = None

    @property
    def clients(self) -> Crowd:
        """The clients."""
        assert self.crowd is not None
        return self.crowd

    def quiet(self) -> None:
        """Let the clients rest until the journals tell of everything that they did."""
        self.clients.pause()
        self.site.wait_for_journals()


Course = Callable[[Scene], Iterator[None]]
"""It yields three times at most: when it is prepared, when it has struck, and when it is over; then it tidies up."""


@dataclass(frozen=True)
class Fault:
    """A fault by name."""

    name: str
    course: Course
    strikes: Callable[[Setup], bool]


FAULTS: dict[str, Fault] = {}


def fault(name: str, on: Callable[[Setup], bool] = lambda setup: True) -> Callable[[Course], Course]:
    """Register a course of events as a fault, on those set-ups."""

    def add(course: Course) -> Course:
        FAULTS[name] = Fault(name, course, on)
        return course

    return add


def on_sqlite(setup: Setup) -> bool:
    """The index is an SQLite file on a disk of its own."""
    return not setup.in_postgres


def on_postgres(setup: Setup) -> bool:
    """The index is in Postgres."""
    return setup.in_postgres


def on_mount(setup: Setup) -> bool:
    """The store lies on a FUSE mount."""
    return setup.is_mount


def keeps_what_is_synced(setup: Setup) -> bool:
    """The store keeps what was synced when the power is cut: zdbfs has no fsync that does anything."""
    return setup.store != "zdbfs"
