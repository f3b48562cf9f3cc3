"""Title, the verdict in one sentence, when and where, and why to doubt it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sluice_s3.loadtests.compare import outlook
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Cell
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.saturation import one_sentence_of_scale
from sluice_s3.loadtests.report.units import decimal, percent
from sluice_s3.loadtests.report.usage import FULL
from sluice_s3.loadtests.report.verdict import RESTLESS, TOGETHER, Judgement, join_names

MOST_NAMES = 12
"""Stores that a title names; of more it says the number."""
UNDECIDED = {
    "no difference": "no difference for",
    "too noisy": "too noisy to call:",
    "too few repeats": "not called, with fewer than three repeats:",
    "nothing to compare": "nothing to compare for",
}

NOTHING_CALLED = {
    "no difference": "No difference that matters in any of the",
    "too noisy": "Nothing can be called: the repeats were too noisy in all",
    "too few repeats": "Nothing is called: fewer than three repeats were made of the",
    "nothing to compare": "Nothing to compare in the",
}


def title(report: Report) -> str:
    """Return the names of the stores, after the user's own title."""
    names = report.model.stores
    shown = ", ".join(names[:MOST_NAMES]) + (f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else "")
    words = " vs ".join(names) if len(names) < 4 else shown
    return f"{report.options.title}: {words}" if report.options.title else words


def lead(report: Report) -> str:
    """Return the verdict in one sentence."""
    uses = [one for one in report.verdict.judgements if one.use is not TOGETHER]
    if not uses:
        return one_sentence_of_scale(report.model) or "Nothing was measured that stores can be chosen by."
    if len(report.model.stores) == 1:
        return f"Only {report.model.stores[0]} was measured: its figures are here, and nothing to choose between."
    won = _grouped([one for one in uses if one.winners])
    left = _grouped([one for one in uses if not one.winners])
    if len(won) == 1 and not left:
        name = next(iter(won))
        return f"Take {name}: the fastest in {_every(len(uses))}."
    if len(left) == 1 and not won and len(uses) > 1:
        call = next(iter(left))
        return f"{NOTHING_CALLED.get(call, call)} {len(uses)} uses that were measured."
    parts = [f"take {name} for {join_names(names)}" for name, names in won.items()]
    parts += [f"{UNDECIDED.get(call, call)} {join_names(names)}" for call, names in left.items()]
    sentence = "; ".join(parts)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _every(uses: int) -> str:
    return "the use that was measured" if uses == 1 else f"all {uses} uses that were measured"


def _grouped(judgements: Sequence[Judgement]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in judgements:
        found.setdefault(one.call, []).append(one.use.name[0].lower() + one.use.name[1:])
    return found


def facts(report: Report) -> list[str | Cell]:
    """Return when, on what machine, how much, and how noisy."""
    model, meta = report.model, report.model.meta
    machine, restless = meta["machine"], report.verdict.restless
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(meta["started"]))
    took = f", {(meta['ended'] - meta['started']) / 60:.0f} min" if meta["ended"] else ""
    requests = sum(line.total.count for line in model.lines if line.total)
    repeats = max((one["repeat"] for one in meta["cells"] if one["state"] == "done"), default=0)
    found: list[str | Cell] = [
        when + took,
        f"{machine['cpu'] or machine['hostname']}, {machine['cores']} cores, {decimal(machine['memory_bytes'])}",
        f"{requests:,} requests, {repeats} {'repeat' if repeats == 1 else 'repeats'}",
    ]
    if restless is not None:
        words = f"noise: repeats vary by {percent(restless)}"
        found.append(
            Cell(words, "bad" if report.verdict.noisy else "", title=f"more than {percent(RESTLESS)} is noisy")
        )
    return found


def doubts(report: Report) -> list[tuple[str, str]]:
    """Return reasons to doubt, short and whole: noise, a busy machine or generator, reads from memory, failures."""
    model, verdict = report.model, report.verdict
    found = []
    if verdict.noisy and verdict.restless is not None:
        found.append((
            "a noisy run",
            f"This run is noisy: the middle one of all figures varies by {percent(verdict.restless)} between "
            f"repeats (more than {percent(RESTLESS)} is noisy). More repeats, or a quieter machine, would tell more.",
        ))  # fmt: skip
    load, cores = calmest(model), model.meta["machine"]["cores"]
    if load > cores:
        found.append((
            "a busy machine",
            f"The machine had other work: even before the calmest cell its load was {load:.1f}, with {cores} cores.",
        ))  # fmt: skip
    unsettled = [("not settled", line) for line in outlook.open_questions(model.meta)]
    return [*found, *unsettled, *_reads_from_memory(report), *_limits(model), *_failures(model)]


def _reads_from_memory(report: Report) -> list[tuple[str, str]]:
    """Return whether the page cache may have held all that was read from a disk."""
    plan, memory = report.model.meta["plan"], report.model.meta["machine"]["memory_bytes"]
    most = max((one["bytes"] for one in plan["scenarios"].values()), default=0)
    reads = [one.use.name for one in report.verdict.judgements if "reads" in one.use.name]
    if not reads or not plan.get("stores") or plan.get("cold") or not 0 < most < memory:
        return []
    return [(
        "reads from memory",
        f"{join_names(reads)} may show the page cache more than the disk: the machine has {decimal(memory)} of memory, "
        f"and no scenario wrote more than {decimal(most)}. sluice bench --cold empties the page cache while it runs.",
    )]  # fmt: skip


def _limits(model: Model) -> list[tuple[str, str]]:
    busy = [one for one in model.usages if one.who == "generator" and one.share > FULL]
    found = []
    for scenario in dict.fromkeys(one.scenario for one in busy):
        names = [f"{one.target} ({percent(one.share)})" for one in busy if one.scenario == scenario]
        found.append((
            "a generator at its limit",
            f"In {scenario} the generator was the bottleneck with {join_names(names)}: a process of it was busy for "
            f"more than {percent(FULL)} of the time. The stores may do more than is measured here: use --processes.",
        ))  # fmt: skip
    return found


def _failures(model: Model) -> list[tuple[str, str]]:
    found = []
    for one in model.errors:
        words = f"{one.count:,} errors of {one.operation} on {one.target} in {one.scenario}"
        found.append(("failed requests", f"{words}, the first: {one.first[0].text}"))
    for again in model.retries:
        words = f"{again.count:,} requests to {again.target} in {again.scenario} were sent again on a new connection"
        found.append(("repeated requests", f"{words}, since the endpoint had closed an idle one."))
    return found


def calmest(model: Model) -> float:
    """Return the lowest load of the machine before a cell; 0 if unknown."""
    return min((cell["load1"][0] for cell in model.meta["cells"] if cell["ended"]), default=0.0)
