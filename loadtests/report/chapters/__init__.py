"""The chapters of a report: one for each scenario, and some for the run.

Each is built from the model alone.
"""

from __future__ import annotations

from sluice_s3.loadtests.report.chapters import (
    batches,
    environment,
    failures,
    keys,
    mixes,
    sizes,
    small_files,
    summary,
    threads,
    time_breakdown,
)
from sluice_s3.loadtests.report.document import Chapter
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.verdict import Verdict


def chapters(model: Model, verdict: Verdict) -> list[Chapter]:
    """Return the chapters in reading order: the verdict first, the machine last."""
    found = [summary.chapter(model, verdict)]
    played = model.scenarios()
    made = {
        "mixed": mixes.chapter,
        "sizes": sizes.chapter,
        "small_files": small_files.chapter,
        "batches": batches.chapter,
        "threads": threads.chapter,
        "stat_delete_list": keys.chapter,
        "open_loop": mixes.chapter,
        "boto3_mixed": mixes.chapter,
    }
    for name, make in made.items():
        if name in played:
            chapter = make(model, name)
            chapter.blocks[1:1] = failures.errors(model, name)
            found.append(chapter)
    found += time_breakdown.found(model)
    return [*found, environment.chapter(model)]
