"""Judges a run while it goes on: which uses are known well enough, and which need more repeats.

A use is settled when the interval of each store against the fastest is no wider than the difference that matters, or
the difference is at least twice as wide as its interval reaches. To look at the intervals again and again would find
differences where there are none: a run that stops by them counts each comparison twice (`significance`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare.rounds import MOST_NEEDED, Standing
from sluice_s3.loadtests.report import significance, stats
from sluice_s3.loadtests.report.loader import read
from sluice_s3.loadtests.report.model import Model, line_of
from sluice_s3.loadtests.report.significance import LOOKING, MATTERS, MIN_REPEATS
from sluice_s3.loadtests.report.use_cases import USES, USES_OF, Measure, Use, measures
from sluice_s3.loadtests.report.verdict import Score, scored

CLEAR = 2.0
"""A difference so many times as large as its interval reaches is settled however wide that is."""


class Interim:
    """The figures of a run so far. `stores` are the targets to choose between."""

    def __init__(self, directory: Path, meta: Mapping[str, Any]) -> None:
        self.uses = USES_OF
        self._directory = directory
        self._meta = meta
        self._measures: dict[tuple[str, str, str], Measure] = {}

    def add(self, cell: Mapping[str, Any]) -> None:
        """Read the rows of a cell that ended well."""
        model = Model({**self._meta, "cells": [cell]})
        for reading in read(self._directory, model.meta, model.unread):
            model.lines.extend(line_of(reading, kind) for kind in reading.kinds)
        for one in measures(model):
            key = (one.target, one.use, one.name)
            before = self._measures.get(key)
            if before is not None:
                one = replace(one, speeds=before.speeds | one.speeds, failed=max(before.failed, one.failed))
            self._measures[key] = one

    def standings(self) -> list[Standing]:
        """Return how surely each use is known."""
        stores = Model(self._meta).stores
        found = [self._standing(use, stores) for use in USES]
        return [one for one in found if one is not None]

    def _standing(self, use: Use, stores: Sequence[str]) -> Standing | None:
        own = [one for one in self._measures.values() if one.use == use.name]
        figures, scores = scored(use, own, stores)
        if not scores:
            return None
        scenarios = tuple(dict.fromkeys(one.scenario for one in own if one.name in figures))
        usable = [one for one in scores.values() if one.speed]
        repeats = min((len(one.speeds) for one in usable), default=0)
        if not usable:  # too many errors: more repeats would not change that
            return Standing(use.name, scenarios, repeats, settled=True)
        if repeats < MIN_REPEATS:
            return Standing(use.name, scenarios, repeats, settled=False)
        return _settle(Standing(use.name, scenarios, repeats, settled=True), usable)


def _settle(found: Standing, scores: Sequence[Score]) -> Standing:
    """Return a standing with the widest interval that is not settled, else the widest of all."""
    best = max(scores, key=lambda score: score.speed)
    others = [one for one in scores if one is not best] or [best]
    widths = [(*half_of(best, one, len(others)), one) for one in others]
    open_ones = [one for one in widths if not is_settled(one[0], one[1])]
    half, _, widest = max(open_ones or widths, key=lambda one: one[0])
    spread = max(stats.sigma([math.log(speed) for speed in one.speeds.values()]) for one in (best, widest))
    needed = min(MOST_NEEDED, math.ceil(found.repeats * (half / math.log1p(MATTERS)) ** 2)) if open_ones else None
    return replace(found, settled=not open_ones, half=math.expm1(half), spread=spread, needed=needed)


def half_of(a: Score, b: Score, others: int) -> tuple[float, float]:
    """Return half the interval of two stores' difference, and the difference, as logarithms of speeds."""
    logs = [tuple(math.log(speed) for speed in one.speeds.values()) for one in (a, b)]
    level = 1 - (1 - significance.LEVEL) / (LOOKING * max(1, others))
    return significance.half_width(logs[0], logs[1], level), abs(stats.mean(logs[0]) - stats.mean(logs[1]))


def is_settled(half: float, difference: float) -> bool:
    """Return whether more repeats would not change what is said."""
    return half <= math.log1p(MATTERS) or difference >= max(CLEAR * half, math.log1p(MATTERS))
