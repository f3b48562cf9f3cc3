"""The chapters of a report: the verdict, one for each scenario, and some for the run."""

from __future__ import annotations

from sluice_s3.loadtests.report.chapters import (
    batches,
    environment,
    failures,
    keys,
    mixes,
    money,
    raw_data,
    saturation,
    sizes,
    small_files,
    summary,
    threads,
    time_breakdown,
)
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Chapter

OF_SCENARIO = {
    "mixed": mixes.chapter,
    "sizes": sizes.chapter,
    "small_files": small_files.chapter,
    "batches": batches.chapter,
    "threads": threads.chapter,
    "stat_delete_list": keys.chapter,
    "open_loop": mixes.chapter,
    "boto3_mixed": mixes.chapter,
    "saturation": saturation.chapter,
}


def chapters(report: Report) -> list[Chapter]:
    """Return the chapters in reading order: the verdict first, the machine and the raw data last."""
    found = [*summary.uses(report), *money.found(report)]
    played = report.model.scenarios()
    for name in sorted((name for name in OF_SCENARIO if name in played), key=lambda name: name != "saturation"):
        chapter = OF_SCENARIO[name](report, name)
        chapter.blocks[1:1] = failures.errors(report.model, name)
        found.append(chapter)
    found += time_breakdown.found(report.model)
    return [*found, *summary.details(report), *environment.chapters(report.model), raw_data.chapter(report.model)]
