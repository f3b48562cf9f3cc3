"""The verdict: the store for each use, with figures and margins, and how it is judged."""

from __future__ import annotations

from sluice_s3.loadtests.report import significance
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.blocks import intervals
from sluice_s3.loadtests.report.stats import sigma
from sluice_s3.loadtests.report.units import percent
from sluice_s3.loadtests.report.usage import FULL
from sluice_s3.loadtests.report.use_cases import BAD_SHARE
from sluice_s3.loadtests.report.use_figures import UseFigures
from sluice_s3.loadtests.report.verdict import Cost, Judgement, Score, Verdict, join_names, margin, sentence

MOST_NAMED = 3
"""Rivals that the reason for a verdict names."""
CALLS = {
    "faster": "faster",
    "slower": "slower",
    "no difference": "no difference",
    "too noisy": "too noisy to call",
    "too few repeats": "not called: fewer than three repeats",
    "not measured": "not measured",
}


def uses(report: Report) -> list[Chapter]:
    """Return the second screen: one row a use."""
    if not report.verdict.judgements:
        return []
    return [Chapter("verdict", "Verdict", "", [by_use(report)], fold="")]


def details(report: Report) -> list[Chapter]:
    """Return what stands behind the verdict."""
    model, verdict = report.model, report.verdict
    blocks: list[Block] = []
    if verdict.judgements:
        blocks += [*differences(model, verdict), relative(model, verdict)]
    if verdict.costs:
        blocks.append(costs(verdict))
    return [Chapter("judgement", "How sure this is", how(), blocks)]


def by_use(report: Report) -> Table:
    """Render each use: what to take, the figures of each store, and why."""
    figures = {one.judgement.use.name: one for one in report.figures}
    names = report.model.stores
    rows: list[list[str | Cell]] = []
    for one in report.verdict.judgements:
        row: list[str | Cell] = [Cell(one.use.name, title=one.use.what)]
        row.append(Cell(_call(one), "best" if one.winners else "quiet"))
        row.append(Cell(_why(one), "wide", title=sentence(one)))
        rows.append([*row, *(_figures(figures.get(one.use.name), one, name) for name in names)])
    note = "Throughput, and latency: median / 99th percentile. " + "; ".join(
        f"{one.use.name}: {one.use.what}" for one in report.verdict.judgements
    )
    return Table(["Use", "Take", "Why", *names], rows, "", f"{note}.", 3 + len(names))


def _why(judgement: Judgement) -> str:
    """Return the sentence; of many stores the next and the last one only, and the whole on hover."""
    if len(judgement.over) <= MOST_NAMED:
        return sentence(judgement)
    ordered = sorted(judgement.over, key=lambda name: judgement.over[name].ratio or 1.0)
    near, far = (f"{name}{margin(judgement.over[name])}" for name in (ordered[0], ordered[-1]))
    words = f"{judgement.best} was measured the fastest: before {near}; the slowest is {far}"
    failed = [name for name, score in judgement.scores.items() if score.failed > BAD_SHARE]
    parts = [words, *([f"Too many requests failed on {join_names(failed)}"] if failed else [])]
    if judgement.limited:
        parts.append(f"The generator was the bottleneck with {join_names(judgement.limited)}")
    return ". ".join(parts) + "."


def _figures(found: UseFigures | None, judgement: Judgement, name: str) -> Cell:
    if found is None or name not in found.throughput:
        return Cell("", "quiet")
    words = f"{found.render_throughput(name)}, {found.render_latency(name)}".removesuffix(", ")
    return Cell(words, "best" if name in judgement.winners else "")


def differences(model: Model, verdict: Verdict) -> list[Block]:
    """Render every store against the first, by use, with intervals where they exist."""
    first, *others = model.stores
    figures = []
    for name in others:
        rows = []
        for one in verdict.judgements:
            if first in one.scores and name in one.scores and one.scores[first].speed and one.scores[name].speed:
                found = significance.compare(*(list(one.scores[store].speeds.values()) for store in (name, first)))
                words = f"{one.use.name}: {CALLS[found.call]}"
                rows.append((one.use.name, model.targets.index(name), found.ratio or 1.0, found.low, found.high, words))
        if rows:
            title = f"{name} against {first}"
            figures.append(
                Figure(intervals(title, rows, f"speed: times as fast as {first}"), f"{title}: speed, with its interval")
            )
    return [Figures(figures, f"Against {first}")] if figures else []


def _call(judgement: Judgement) -> str:
    return CALLS.get(judgement.call, judgement.call)


def relative(model: Model, verdict: Verdict) -> Table:
    """Render speeds against the best, as an overview."""
    rows: list[list[str | Cell]] = []
    for one in verdict.judgements:
        top = one.scores[one.best].speed if one.best else 0.0
        row: list[str | Cell] = [Cell(one.use.name, title=one.use.what)]
        for name in model.stores:
            row.append(_share(one.scores.get(name), top, name in one.winners))
        rows.append(row)
    note = "Speed as a share of the fastest's, ± the standard deviation between repeats."
    return Table(["Use", *model.stores], rows, "Relative speed", note)


def _share(score: Score | None, top: float, best: bool) -> Cell:
    if score is None:
        return Cell("not measured", "quiet")
    if score.failed > BAD_SHARE:
        return Cell(f"{percent(score.failed)} failed", "bad")
    if not score.speed or not top:
        return Cell("", "quiet")
    share = score.speed / top
    deviation = sigma([one / score.speed for one in score.speeds.values()]) * share
    spread = f" ±{percent(deviation)}" if len(score.speeds) > 1 else ""
    return Cell(f"{percent(share)}{spread}", "best" if best else "", heat=share)


def costs(verdict: Verdict) -> Table:
    """Render each gateway against plain files of its own store."""
    uses = list(dict.fromkeys(use for one in verdict.costs for use in one.over))
    rows: list[list[str | Cell]] = [[use, *(_cost(one, use) for one in verdict.costs)] for use in uses]
    head = ["Use", *(f"{one.target} against {one.direct}" for one in verdict.costs)]
    note = "Speed through the gateway as a share of that of plain files on the same store without it."
    return Table(head, rows, "What the gateway costs", note)


def _cost(cost: Cost, use: str) -> str:
    found = cost.over.get(use)
    if found is None or found.ratio is None:
        return ""
    if found.low is None or found.high is None:
        return percent(found.ratio)
    return f"{percent(found.ratio)} ({percent(found.low)} to {percent(found.high)})"


def how() -> str:
    """Explain how the report judges."""
    return (
        f"How this is judged: each repeat gives one figure a use; intervals are {significance.LEVEL:.0%} bootstrap "
        "intervals over the repeats. A store is called faster when its interval leaves out “the same” and it is ahead "
        f"by {significance.MATTERS:.0%} or more; otherwise “no difference” when the interval reaches no farther than "
        f"{significance.NOISY:.0%} to a side, “too noisy to call” when it does. "
        f"Fewer than {significance.MIN_REPEATS} repeats are not judged. "
        f"A run with minutes counts each comparison as {significance.LOOKING}, since it ends by what it sees of them. "
        f"Figures with more than {BAD_SHARE:.0%} of errors are not compared. The generator is called the "
        f"bottleneck when one of its processes was busy for more than {FULL:.0%} of the time."
    )
