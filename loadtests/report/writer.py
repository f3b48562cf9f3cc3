"""Writes a report into the directory of its run."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.report import html, markdown
from sluice_s3.loadtests.report.chapters import chapters
from sluice_s3.loadtests.report.model import Model, of_run
from sluice_s3.loadtests.report.verdict import Verdict, headline, judge, sentence


def write_report(directory: Path) -> str:
    """Write report.html, report.md and report.json. Return the verdict in short, with the page's path.

    Raises PlanError when the directory holds no run, OSError when it cannot be written.
    """
    model = of_run(directory)
    verdict = judge(model)
    title = f"Stores compared: {model.meta['run']}"
    found = chapters(model, verdict)
    put(directory / "report.json", json.dumps(as_json(model, verdict), indent=1))
    put(directory / "report.md", markdown.written(title, model.partial, found))
    put(directory / "report.html", html.render_page(title, model.partial, render_subtitle(model), found))
    lines = [f"partial run: {model.partial}"] if model.partial else []
    lines += [f"{one.use.name}: {sentence(one)}" for one in verdict.judgements]
    return "\n".join([*lines, str(directory / "report.html")])


def put(file: Path, text: str) -> None:
    """Write a file atomically."""
    making = file.with_name(f"{file.name}.making")
    making.write_text(text, encoding="utf-8")
    making.replace(file)


def render_subtitle(model: Model) -> list[str]:
    """Return the facts under the title."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(model.meta["started"]))
    machine = model.meta["machine"]
    requests = sum(line.total.count for line in model.lines if line.total)
    return [
        when,
        f"{machine['cpu']}, {machine['cores']} cores",
        _number(len(model.targets), "target"),
        _number(model.meta["plan"]["repeats"], "repeat"),
        _number(requests, "request"),
    ]


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def as_json(model: Model, verdict: Verdict) -> dict[str, Any]:
    """Return the whole model as JSON, for other programs.

    All times are in seconds and sizes in bytes, except phases (milliseconds).
    """
    return {
        "format": 1,
        "run": model.meta["run"],
        "state": model.meta["state"],
        "partial": model.partial,
        "verdict": {
            "headline": headline(verdict.judgements),
            "noisy": verdict.noisy,
            "restless": verdict.restless,
            "uses": [
                {"use": one.use.name, "call": one.call, "says": sentence(one), "best": one.best, "figures": one.figures,
                 "scores": {name: asdict(score) | {"speed": score.speed} for name, score in one.scores.items()},
                 "over": {name: asdict(difference) for name, difference in one.over.items()}, "limited": one.limited}
                for one in verdict.judgements
            ],
            "costs": [asdict(one) for one in verdict.costs],
        },
        "lines": [asdict(one) for one in model.lines],
        "courses": [_course(asdict(one)) for one in model.courses],
        "errors": [asdict(one) for one in model.errors],
        "retries": [asdict(one) for one in model.retries],
        "usage": [asdict(one) | {"cores": one.cores} for one in model.usages],
        "unread": model.unread,
        "meta": dict(model.meta),
    }  # fmt: skip


def _course(found: dict[str, Any]) -> dict[str, Any]:
    """Return a course with a heat map that JSON can hold: [column, band, count]."""
    if found["heat"] is not None:
        found["heat"]["counts"] = [[*place, count] for place, count in found["heat"]["counts"].items()]
    return found
