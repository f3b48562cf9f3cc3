"""Which store is best for which use, by how much, and how surely."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice_s3.loadtests.report import significance, stats
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.significance import Difference
from sluice_s3.loadtests.report.units import percent, significant
from sluice_s3.loadtests.report.use_cases import BAD_SHARE, USES, Measure, Use, measures

TOGETHER = Use("All of it", "the geometric mean of the uses above")
RESTLESS = 0.15
"""A run is noisy if its median figure varies by more between repeats."""
UNBOUNDED = 1000
"""An interval that reaches farther to a side says nothing; its bounds are not shown."""
SMALL_SAMPLE = {3: 1.13, 4: 1.09, 5: 1.06}
"""Corrects the mean bias of a standard deviation of few values (1 / c4)."""


@dataclass(frozen=True)
class Score:
    """Speeds of a target in a use, by repeat.

    Each is the geometric mean of the use's figures, each against the first target's.
    """

    target: str
    speeds: dict[int, float]
    failed: float

    @property
    def speed(self) -> float:
        """The speed over the repeats; 0 without repeats or with too many failures."""
        return stats.geometric(list(self.speeds.values())) if self.speeds and self.failed <= BAD_SHARE else 0.0


@dataclass(frozen=True)
class Judgement:
    """The verdict for one use.

    `best` is the fastest (empty: none was measured), `over` how it differs from each other target. `limited` are
    targets whose generator was at its limit.
    """

    use: Use
    figures: list[str]
    scores: dict[str, Score]
    best: str
    over: dict[str, Difference]
    limited: list[str]

    @property
    def winners(self) -> list[str]:
        """The fastest target, and those that do not differ from it.

        It is empty unless some target is slower.
        """
        calls = {target: difference.call for target, difference in self.over.items()}
        if "faster" not in calls.values():
            return []
        return [target for target in self.scores if target == self.best or calls.get(target, "faster") != "faster"]

    @property
    def call(self) -> str:
        """The verdict in short: the winners, `no difference`, or why there is none."""
        if self.winners:
            return join_names(self.winners, "or")
        calls = {difference.call for difference in self.over.values()}
        for one in ("too few repeats", "too noisy", "no difference"):
            if one in calls:
                return one
        return "nothing to compare"


@dataclass(frozen=True)
class Cost:
    """What a gateway adds to plain files.

    `over` is the gateway against plain files, by use.
    """

    target: str
    direct: str
    over: dict[str, Difference]


@dataclass(frozen=True)
class Verdict:
    """The verdict of a run.

    `restless` is how much the median of all figures varies from repeat to repeat, None if unknown.
    """

    judgements: list[Judgement]
    costs: list[Cost]
    restless: float | None

    @property
    def noisy(self) -> bool:
        """Whether the run as a whole was noisy."""
        return self.restless is not None and self.restless > RESTLESS


def judge(model: Model) -> Verdict:
    """Judge all that was measured."""
    found = measures(model)
    judgements = [one for use in USES if (one := _judged(use, found, model.stores, model)) is not None]
    if len(judgements) > 1:
        judgements.append(together(judgements, model.stores, looks_of(model.meta)))
    return Verdict(judgements, _costs(found, model), restlessness(found))


def _judged(use: Use, found: Sequence[Measure], targets: Sequence[str], model: Model) -> Judgement | None:
    figures, scores = scored(use, found, targets)
    if not scores:
        return None
    scenarios = {one.scenario for one in found if one.name in figures}
    limited = [target for target in scores if any(model.limited(target, scenario) for scenario in scenarios)]
    return judged(use, figures, scores, limited, looks_of(model.meta))


def looks_of(*runs: Mapping[str, Any]) -> int:
    """Return as how many comparisons each counts: two where a run ended by what it saw of its intervals."""
    return significance.LOOKING if any(meta["plan"].get("minutes") for meta in runs) else 1


def judged(use: Use, figures: list[str], scores: dict[str, Score], limited: list[str], looks: int = 1) -> Judgement:
    """Compare the fastest with each of the others."""
    best = max(scores, key=lambda target: scores[target].speed)
    if not scores[best].speed:
        return Judgement(use, figures, scores, "", {}, limited)
    others = [target for target in scores if target != best and scores[target].speed]
    over = {
        target: significance.compare(
            list(scores[best].speeds.values()), list(scores[target].speeds.values()), comparisons=looks * len(others)
        )
        for target in others
    }
    return Judgement(use, figures, scores, best, over, limited)


def scored(use: Use, found: Iterable[Measure], targets: Sequence[str]) -> tuple[list[str], dict[str, Score]]:
    """Return the figures that all targets of this use have, and the targets' scores.

    Targets without any figure of the use do not count, nor figures with too few repeats beside others with enough.
    """
    by_target: dict[str, dict[str, Measure]] = {}
    for one in found:
        if one.use == use.name and one.target in targets:
            by_target.setdefault(one.target, {})[one.name] = one
    if not by_target:
        return [], {}
    ordered = [by_target[target] for target in targets if target in by_target]
    counts = {
        name: min(len(one[name].speeds) for one in ordered)
        for name in ordered[0]
        if all(name in one and one[name].speeds for one in ordered)
    }
    figures = [name for name in counts if counts[name] >= min(significance.MIN_REPEATS, max(counts.values()))]
    if not figures:
        return [], {}
    yardstick = {name: stats.geometric(list(ordered[0][name].speeds.values())) for name in figures}
    scores = {}
    for target in (target for target in targets if target in by_target):
        own = [by_target[target][name] for name in figures]
        repeats = sorted(set.intersection(*(set(one.speeds) for one in own)))
        speeds = {
            repeat: stats.geometric([one.speeds[repeat] / yardstick[one.name] for one in own]) for repeat in repeats
        }
        scores[target] = Score(target, speeds, max(one.failed for one in own))
    return figures, scores


def together(judgements: Sequence[Judgement], targets: Sequence[str], looks: int = 1) -> Judgement:
    """Combine all uses into one, for the targets that have them all."""
    whole = [target for target in targets if all(target in one.scores for one in judgements)]
    scores = {}
    for target in whole:
        own = [one.scores[target] for one in judgements]
        repeats = sorted(set.intersection(*(set(one.speeds) for one in own)))
        speeds = {repeat: stats.geometric([one.speeds[repeat] for one in own]) for repeat in repeats}
        scores[target] = Score(target, speeds, max(one.failed for one in own))
    limited = sorted({name for one in judgements for name in one.limited})
    if not scores:
        return Judgement(TOGETHER, [], {}, "", {}, limited)
    return judged(TOGETHER, [one.use.name for one in judgements], scores, limited, looks)


def _costs(found: Sequence[Measure], model: Model) -> list[Cost]:
    costs = []
    for one in model.meta["targets"]:
        name = str(one["name"])
        base = name.removesuffix("-unsynced").removesuffix("-direct")
        if one["kind"] != "direct" or base == name or base not in model.targets:
            continue
        over = {}
        for use in USES:
            _, scores = scored(use, found, (base, name))
            if len(scores) == 2:
                speeds = [list(scores[target].speeds.values()) for target in (base, name)]
                over[use.name] = significance.compare(*speeds, comparisons=looks_of(model.meta))
        if over:
            costs.append(Cost(base, name, over))
    return costs


def restlessness(found: Iterable[Measure]) -> float | None:
    """Return the median of all figures' standard deviations between repeats, as shares."""
    varied = []
    for one in found:
        if len(one.speeds) >= significance.MIN_REPEATS:
            logs = [math.log(speed) for speed in one.speeds.values()]
            varied.append(stats.sigma(logs) * SMALL_SAMPLE.get(len(logs), 1.0))
    return stats.percentile(sorted(varied), 0.5) if varied else None


def sentence(judgement: Judgement) -> str:
    """Return the sentence for a use."""
    failed = [f"{name}: {percent(score.failed)} of its requests failed" for name, score in judgement.scores.items()
              if score.failed > BAD_SHARE]  # fmt: skip
    parts = [*_render_sentences(judgement), *failed]
    if judgement.limited:
        parts.append(f"The generator was the bottleneck with {join_names(judgement.limited)}")
    return ". ".join(parts) + "."


def _render_sentences(judgement: Judgement) -> list[str]:
    if not judgement.over:
        return ["Only one store was measured"] if len(judgement.scores) == 1 else ["Nothing to compare"]
    groups: dict[str, list[str]] = {}
    for target, difference in judgement.over.items():
        groups.setdefault(difference.call, []).append(target)
    sentences = []
    if "faster" in groups:
        margins = [f"{target}{margin(judgement.over[target])}" for target in groups["faster"]]
        sentences.append(f"{judgement.best} is faster than {join_names(margins)}")
    if "no difference" in groups:
        reach = max(judgement.over[target].reach for target in groups["no difference"])
        named = join_names([judgement.best, *groups["no difference"]])
        sentences.append(
            f"No difference between {named} (more than {percent(max(reach, significance.MATTERS))} would show)"
        )
    for call, why in (("too noisy", "Too noisy to call"), ("too few repeats", "Fewer than three repeats")):
        if call in groups:
            margins = [f"{target}{margin(judgement.over[target])}" for target in groups[call]]
            sentences.append(f"{why}: {judgement.best} was measured faster than {join_names(margins)}")
    return sentences


def margin(difference: Difference) -> str:
    """Render ` by 23 % (12 to 35 %)`; as factors if it is large, or the interval wide."""
    ratio, low, high = difference.ratio or 1.0, difference.low, difference.high
    between = ""
    if low and high:
        between = f" ({_bound(low)} to {_bound(high)} %)"
        if max(ratio, high / 3) >= 2 or low < 1 / 3:
            between = f" ({significant(low, 2)} to {significant(high, 2)} times as fast)"
        if low < 1 / UNBOUNDED or high > UNBOUNDED:
            between = f" (the interval is wider than 1/{UNBOUNDED:,} to {UNBOUNDED:,} times)"
    by = f"a factor of {significant(ratio, 2)}" if ratio >= 2 else percent(ratio - 1)
    return f" by {by}{between}"


def _bound(ratio: float) -> str:
    return f"{(ratio - 1) * 100:.0f}"


def join_names(names: Sequence[str], word: str = "and") -> str:
    """Render `a, b and c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def headline(judgements: Sequence[Judgement]) -> list[str]:
    """Return one line for each winner, then the uses without one."""
    won: dict[str, list[str]] = {}
    for one in judgements:
        if one.use is not TOGETHER:
            won.setdefault(one.call, []).append(_name(one.use.name))
    calls: Mapping[str, str] = {
        "no difference": "No difference",
        "too noisy": "Too noisy to call",
        "too few repeats": "Not called, with fewer than three repeats",
        "nothing to compare": "Nothing to compare",
    }
    winners = [f"Take {name} for {join_names(uses)}." for name, uses in won.items() if name not in calls]
    return winners + [f"{calls[name]}: {join_names(uses)}." for name, uses in won.items() if name in calls]


def _name(use: str) -> str:
    return use[0].lower() + use[1:]
