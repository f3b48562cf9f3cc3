"""The verdict: the store for each use, with margins, noise, and reasons for doubt."""

from __future__ import annotations

from sluice_s3.loadtests.report import significance
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Remark, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.blocks import intervals
from sluice_s3.loadtests.report.stats import sigma
from sluice_s3.loadtests.report.units import percent
from sluice_s3.loadtests.report.usage import FULL
from sluice_s3.loadtests.report.use_cases import BAD_SHARE
from sluice_s3.loadtests.report.verdict import RESTLESS, Cost, Judgement, Score, Verdict, headline, join_names, sentence

CALLS = {
    "faster": "faster",
    "slower": "slower",
    "no difference": "no difference",
    "too noisy": "too noisy to call",
    "too few repeats": "not called: fewer than three repeats",
    "not measured": "not measured",
}


def chapter(model: Model, verdict: Verdict) -> Chapter:
    """Render the chapter that comes first."""
    blocks: list[Block] = [Remark(line, "lead") for line in headline(verdict.judgements)]
    blocks += warnings(model, verdict)
    if verdict.judgements:
        blocks += [by_use(verdict), *differences(model, verdict), relative(model, verdict)]
    if verdict.costs:
        blocks.append(costs(verdict))
    blocks.append(Remark(how()))
    return Chapter("verdict", "Verdict", "Which store for which use.", blocks)


def warnings(model: Model, verdict: Verdict) -> list[Block]:
    """Render warnings: a noisy run, a busy generator, failed requests."""
    found: list[Block] = []
    if verdict.noisy and verdict.restless is not None:
        found.append(Remark(
            f"This run is noisy: the middle one of all figures varies by {percent(verdict.restless)} between "
            f"repeats (more than {percent(RESTLESS)} is noisy). More repeats, or a quieter machine, would tell more.",
            "bad",
        ))  # fmt: skip
    load, cores = calmest(model), model.meta["machine"]["cores"]
    if load > cores:
        found.append(Remark(
            f"The machine had other work: even before the calmest cell its load was {load:.1f}, with {cores} cores.",
            "bad",
        ))  # fmt: skip
    busy = [one for one in model.usages if one.who == "generator" and one.share > FULL]
    for scenario in dict.fromkeys(one.scenario for one in busy):
        names = [f"{one.target} ({percent(one.share)})" for one in busy if one.scenario == scenario]
        found.append(Remark(
            f"In {scenario} the generator was the bottleneck with {join_names(names)}: a process of it was busy for "
            f"more than {percent(FULL)} of the time. The stores may do more than is measured here: use --processes.",
            "bad",
        ))  # fmt: skip
    for one in model.errors:
        words = f"{one.count:,} errors of {one.operation} on {one.target} in {one.scenario}"
        found.append(Remark(f"{words}, the first: {one.first[0].text}", "bad"))
    for again in model.retries:
        words = f"{again.count:,} requests to {again.target} in {again.scenario} were sent again on a new connection"
        found.append(Remark(f"{words}, since the endpoint had closed an idle one."))
    return found


def calmest(model: Model) -> float:
    """Return the lowest load of the machine before a cell; 0 if unknown."""
    return min((cell["load1"][0] for cell in model.meta["cells"] if cell["ended"]), default=0.0)


def by_use(verdict: Verdict) -> Table:
    """Render a sentence for each use."""
    rows: list[list[str | Cell]] = [
        [one.use.name, Cell(_call(one), "best" if one.winners else "quiet"), Cell(sentence(one))]
        for one in verdict.judgements
    ]
    return Table(["Use", "Take", "Why"], rows, "", "", 3)


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
            figures.append(Figure(intervals(title, rows, "times as fast"), f"{title}: speed, with its interval"))
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
    note = "Speed as a share of the fastest's, ± the standard deviation between repeats. What is in each use: "
    note += "; ".join(f"{one.use.name} ({one.use.what})" for one in verdict.judgements) + "."
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
        f"Figures with more than {BAD_SHARE:.0%} of errors are not compared. The generator is called the "
        f"bottleneck when one of its processes was busy for more than {FULL:.0%} of the time."
    )
