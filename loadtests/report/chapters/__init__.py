"""The chapters of a report, one for each scenario and some for the run: each is made from the model alone."""

from __future__ import annotations

from loadtests.report.chapters import (
    batches,
    failures,
    keys,
    machine,
    mixes,
    opening,
    sizes,
    small_files,
    threads,
    time_spent,
)
from loadtests.report.model import Model
from loadtests.report.parts import Chapter
from loadtests.report.verdict import Verdict


def chapters(model: Model, verdict: Verdict) -> list[Chapter]:
    """In the order in which they are read: the verdict first, the machine last."""
    found = [opening.chapter(model, verdict)]
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
    found += time_spent.found(model)
    return [*found, machine.chapter(model)]
