"""What a seed decides: which faults strike when, and what every client does, in which order, to which key.

Nothing here knows the time or an answer, so that the same seed always gives the same plan.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PLAIN, VERSIONED, LOCKED, AGING, FILES = "plain", "versioned", "locked", "aging", "files"
"""Buckets: without versions, with them, with object lock, with lifecycle rules, and of plain files."""
KEYS = 5
"""Keys of a bucket that are in use at one time."""
LENGTH = 60
"""Operations on a key, more or less, until another takes its place: short histories are soon checked."""
CLIENTS = 6
SOURCES = 4
"""Objects that are only copied."""
LARGE = 200_000
"""Bytes of a body that gets a file of its own."""

LOADS: dict[str, tuple[str, ...]] = {
    PLAIN: ("get", "head", "put", "delete", "copy", "multipart", "rename", "encrypted", "list"),
    VERSIONED: ("get", "put", "delete", "copy", "multipart", "remove", "encrypted", "list"),
    LOCKED: ("lock", "get", "delete", "remove"),
    AGING: ("due", "stay", "look"),
    FILES: ("get", "head", "put", "delete", "copy", "multipart", "list"),
}
"""What is done in each bucket. Any of put, delete, copy and multipart may have a condition."""
WEIGHTS = {"get": 6, "head": 2, "put": 6, "delete": 2, "copy": 2, "multipart": 2, "rename": 1, "encrypted": 1}
CONDITIONAL = ("put", "delete", "copy", "multipart")
CONDITIONS = ("", "", "", "none", "mine", "mine")
"""No condition, that there is nothing, or the ETag that the client knows of the key."""


class Step(NamedTuple):
    """One operation of a client. Of `condition` and `pick` becomes a header and a version when it is done."""

    kind: str
    bucket: str
    key: str
    gateway: int
    size: int
    condition: str
    pick: float


class Episode(NamedTuple):
    """One fault under load. `seed` also decides the details of the fault."""

    seed: str
    fault: str
    before: int
    """Operations that are answered before it strikes."""
    hold: float
    """Seconds that it lasts."""
    after: int
    """Operations that are answered once it is over."""
    mix: tuple[tuple[str, int], ...]
    """How often each bucket is used."""
    moves: bool
    """Whether a bucket moves to another store meanwhile."""


def episodes(
    seed: int, setup: str, faults: Sequence[str], buckets: Sequence[str], before: int, hold: float
) -> list[Episode]:
    """One of each fault, in an order of the seed's. Alone or with others, each is the same."""
    order = random.Random(f"{seed}/{setup}").sample(list(faults), len(faults))
    return [episode(seed, setup, fault, buckets, before, hold) for fault in order]


def episode(seed: int, setup: str, fault: str, buckets: Sequence[str], before: int, hold: float) -> Episode:
    """The episode of one fault."""
    name = f"{seed}/{setup}/{fault}"
    rng = random.Random(name)
    favourite = rng.choice(buckets)
    usual = {PLAIN: 12, VERSIONED: 6, LOCKED: 1, AGING: 2, FILES: 1}
    mix = tuple((bucket, usual[bucket] * (3 if bucket == favourite else 1)) for bucket in buckets)
    return Episode(
        name,
        fault,
        rng.randint(before // 2, before * 3 // 2),
        rng.uniform(hold / 2, hold * 3 / 2),
        max(before // 4, 10),
        mix,
        VERSIONED in buckets and rng.random() < 0.4,
    )


def steps(plan: Episode, client: int, gateways: int) -> Iterator[Step]:
    """What one client does, without end."""
    rng = random.Random(f"{plan.seed}/{client}")
    buckets, weights = zip(*plan.mix, strict=True)
    share = {bucket: weight / sum(weights) for bucket, weight in plan.mix}
    number = 0
    while True:
        bucket = rng.choices(buckets, weights)[0]
        kinds = LOADS[bucket]
        kind = rng.choices(kinds, [WEIGHTS.get(kind, 1) for kind in kinds])[0]
        # clients go on together to new keys, without a word to each other
        epoch = int(number * share[bucket] * CLIENTS / (KEYS * LENGTH))
        key = f"{plan.fault}/{epoch}-{rng.randrange(KEYS)}"
        if kind in ("due", "stay"):
            key = f"{kind}/{plan.fault}/{client}-{number}"
        size = LARGE if rng.random() < 0.1 else rng.randrange(1, 9000)
        condition = rng.choice(CONDITIONS) if kind in CONDITIONAL else ""
        yield Step(kind, bucket, key, rng.randrange(gateways), size, condition, rng.random())
        number += 1
