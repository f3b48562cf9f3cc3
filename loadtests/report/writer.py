"""Writes a report into the directory of its run."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare import run_metadata as meta_file
from sluice_s3.loadtests.report import html, markdown
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.cost.bill import bills_of, crossings
from sluice_s3.loadtests.report.cost.load import load_of
from sluice_s3.loadtests.report.model import Model, of_run
from sluice_s3.loadtests.report.options import KEY, ReportOptions, check_prices, options_of
from sluice_s3.loadtests.report.page import page_of
from sluice_s3.loadtests.report.parquet import write_parquet
from sluice_s3.loadtests.report.saturation import scales
from sluice_s3.loadtests.report.use_cases import measures
from sluice_s3.loadtests.report.use_figures import use_figures
from sluice_s3.loadtests.report.verdict import headline, judge, sentence


def write_report(directory: Path, options: ReportOptions | None = None) -> str:
    """Write report.html, report.md and report.json. Return the verdict in short, with the page's path.

    What `options` give is kept in `meta.json`; what they leave out is as the run has it. Raises PlanError when the
    directory holds no run or a price is of no store in it, OSError when it cannot be written.
    """
    model = of_run(directory)
    earlier = options_of(model.meta)
    wanted = earlier if options is None else options.over(earlier)
    check_prices(wanted, model.targets)
    if wanted != earlier:
        model = replace(model, meta={**model.meta, KEY: wanted.model_dump(exclude_defaults=True)})
        meta_file.write(directory, dict(model.meta))
    report = report_of(replace(model, parquet=write_parquet(directory, model.meta)), wanted)
    page = page_of(report)
    put(directory / "report.json", json.dumps(as_json(report), indent=1))
    put(directory / "report.md", markdown.written(page))
    put(directory / "report.html", html.render_page(page))
    lines = [f"partial run: {model.partial}"] if model.partial else []
    lines += [f"{one.use.name}: {sentence(one)}" for one in report.verdict.judgements]
    return "\n".join([*lines, page.lead, str(directory / "report.html")])


def report_of(model: Model, options: ReportOptions) -> Report:
    """Judge a run."""
    verdict, found = judge(model), measures(model)
    return Report(model, verdict, options, found, use_figures(model, found, verdict.judgements))


def put(file: Path, text: str) -> None:
    """Write a file atomically."""
    making = file.with_name(f"{file.name}.making")
    making.write_text(text, encoding="utf-8")
    making.replace(file)


def as_json(report: Report) -> dict[str, Any]:
    """Return the whole model as JSON, for other programs.

    All times are in seconds and sizes in bytes, except phases (milliseconds).
    """
    model, verdict = report.model, report.verdict
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
        "figures": [
            {"use": one.judgement.use.name, "unit": one.unit, "p99": one.p99,
             "throughput": {name: asdict(value) for name, value in one.throughput.items()},
             "latency": {name: asdict(value) for name, value in one.latency.items()}}
            for one in report.figures
        ],
        "saturation": [asdict(one) for one in scales(model)],
        "money": _money(report),
        "meta": dict(model.meta),
    }  # fmt: skip


def _course(found: dict[str, Any]) -> dict[str, Any]:
    """Return a course with a heat map that JSON can hold: [column, band, count]."""
    if found["heat"] is not None:
        found["heat"]["counts"] = [[*place, count] for place, count in found["heat"]["counts"].items()]
    return found


def _money(report: Report) -> dict[str, Any] | None:
    """Return what the load costs a month in US dollars; None without prices."""
    load = load_of(report.model)
    if not report.options.prices or load is None:
        return None
    bills = bills_of(report.options.prices, load)
    return {
        "load": asdict(load),
        "prices": {name: price.model_dump() for name, price in report.options.prices.items()},
        "bills": [asdict(one) | {"dollars": one.total(one.rate), "mbps_for_a_dollar": one.per_dollar} for one in bills],
        "crossings": [asdict(one) for one in crossings(bills)],
    }
