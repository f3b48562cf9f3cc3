"""Why a run ended: what is settled, what is not and why, in the words of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sluice_s3.loadtests.compare import cold
from sluice_s3.loadtests.compare.plan import Plan
from sluice_s3.loadtests.compare.rounds import MOST_NEEDED, Standing
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, Deadline

OVERRUN_SECONDS = 2.0
"""A longer overrun is said."""
OTHERS_SHARE = 0.1
"""Other processes are named as a reason when they took more than this share of all cores."""


def stop_of(
    plan: Plan, why: str, deadline: Deadline, standings: Sequence[Standing], cells: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what `meta.json` says of the end: why, after how long, and how surely each use is known."""
    others = sorted(float(cell.get("others", 0.0)) for cell in cells)
    return {
        "why": why,
        "took_s": round(deadline.took(), 1),
        "limit_s": round(deadline.seconds, 1),
        "seed": plan.seed,
        "others": others[len(others) // 2] if others else 0.0,
        "standings": [asdict(one) for one in standings],
    }


def sentences(meta: Mapping[str, Any]) -> list[str]:
    """Return why a run ended, and what is not settled, as sentences for the terminal and the report."""
    if not meta.get("stop"):
        return []
    return [*_end(meta["stop"]), *open_questions(meta), *(f"{line}." for line in cold.describe(meta["cells"]))]


def open_questions(meta: Mapping[str, Any]) -> list[str]:
    """Return what a run with minutes could not settle, and why."""
    stop = meta.get("stop") or {"standings": [], "limit_s": 0.0}
    found = _left_out(meta) if stop["limit_s"] else []
    unsettled = [one for one in stop["standings"] if not one["settled"]]
    if unsettled and stop["limit_s"]:
        found += [*map(_unsettled, unsettled), _reason(stop, meta["machine"]["cores"])]
    if meta.get("clock_steps"):
        found.append(f"The clock was stepped while it ran, by {meta['clock_steps'][0]:+.2f} s: times may be wrong.")
    return found


def _end(stop: Mapping[str, Any]) -> list[str]:
    """Return how it ended, if it had minutes."""
    took, limit = float(stop["took_s"]), float(stop["limit_s"])
    if not limit:
        return []
    over = took - limit
    if over > OVERRUN_SECONDS:
        found = [f"Measured for {_minutes(took)}: {over:.0f} s longer than it had ({_minutes(limit)})."]
    else:
        found = [f"Measured for {_minutes(took)} of {_minutes(limit)}."]
    if stop["why"] == "settled":
        found.append("It ended there: every use is known well enough.")
    return found


def _left_out(meta: Mapping[str, Any]) -> list[str]:
    """Return which scenarios have too few repeats because the time was short."""
    plan = meta["plan"]
    if not plan.get("minutes"):
        return []
    short = []
    for name in plan["scenarios"]:
        counts = dict.fromkeys((one["name"] for one in meta["targets"]), 0)
        for cell in meta["cells"]:
            if cell["scenario"] == name and cell["state"] == "done" and cell["target"] in counts:
                counts[cell["target"]] += 1
        if min(counts.values(), default=0) < LEAST_REPEATS:
            short.append(f"{name} ({max(counts.values(), default=0)})")
    return [f"There was no time for {LEAST_REPEATS} repeats of {', '.join(short)}."] if short else []


def _unsettled(one: Mapping[str, Any]) -> str:
    if one["half"] is None:
        return f"{one['use']}: {one['repeats']} of {LEAST_REPEATS} repeats, so there is no verdict."
    more, half = "", one["half"]
    if one["needed"] == MOST_NEEDED:
        more = f" Even {MOST_NEEDED} would not settle it."
    elif one["needed"]:
        more = f" About {max(1, one['needed'] - one['repeats'])} more would settle it."
    known = f"±{half:.0%}" if half < 1 else f"a factor of {1 + half:.2g}"
    return (
        f"{one['use']} is not settled after {one['repeats']} repeats: known to {known}, "
        f"as a repeat varies by {one['spread']:.0%}.{more}"
    )


def _reason(stop: Mapping[str, Any], cores: int) -> str:
    if stop["others"] > OTHERS_SHARE * cores:
        return f"Why: other processes took {stop['others']:.1f} of {cores} cores while it measured."
    return "Why: the stores themselves vary; other processes took hardly any time of the processor."


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
