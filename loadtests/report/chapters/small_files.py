"""A source tree of small files, written and read."""

from __future__ import annotations

from sluice_s3.loadtests.report import stats
from sluice_s3.loadtests.report.chapters.published import SMALL_FILES, SMALL_FILES_SOURCE, cite
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Remark, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.lines import percentiles
from sluice_s3.loadtests.report.units import decimal, megabytes, seconds, significant, times

STAGES = {
    "write": "Write",
    "read-cold": "Read, cold caches",
    "read-warm": "Read, warm caches",
}


def chapter(report: Report, scenario: str) -> Chapter:
    """Render MB/s and the improvement over the first store."""
    model = report.model
    notes = [cell["notes"] for cell in model.meta["cells"] if cell["scenario"] == scenario and cell["notes"]]
    about = "A source tree, written by one client; then read by several, 80 % of the reads from a fifth of the files."
    if notes and "files" in notes[0]:
        about += f" Here {notes[0]['files']:,} files of {decimal(notes[0].get('bytes', 0))} in all."
    blocks: list[Block] = [table(model, stage) for stage in STAGES if model.of(scenario, stage=stage)]
    if any(not one.get("dropped_caches") for one in notes):
        blocks.append(Remark("Caches could not be dropped (that needs root): the cold reads are warm ones too.", "bad"))
    return Chapter(
        scenario, "Small files", about, [*blocks, plots(model), *(published() if report.options.published else [])]
    )


def table(model: Model, stage: str) -> Table:
    """Render a stage: time, MB/s with the repeats' deviation, and improvement.

    The improvement is over the first store that has figures.
    """
    rows: list[list[str | Cell]] = []
    first = 0.0
    for line in model.of("small_files", stage=stage):
        rates = [one.rate for one in line.rounds if one.rate]
        if not rates or line.total is None:
            rows.append([line.target, "", "", "", "", f"{line.errors:,} errors"])
            continue
        rate = stats.mean(rates)
        first = first or rate
        took = stats.mean([one.seconds for one in line.rounds])
        spread = f"±{megabytes(stats.sigma(rates))}" if len(rates) > 1 else ""
        files = sum(one.count for one in line.rounds) / sum(one.seconds for one in line.rounds)
        rows.append(
            [line.target, seconds(took), f"{megabytes(rate)} MB/s", spread, significant(files), seconds(line.total.p50),
             seconds(line.total.p99), times(rate / first)]
        )  # fmt: skip
    head = ["Target", "Time", "Throughput", "between repeats", "files/s", "p50", "p99", "Improvement"]
    return Table(head, [_filled(row, len(head)) for row in rows], STAGES[stage])


def _filled(row: list[str | Cell], columns: int) -> list[str | Cell]:
    return [*row[:1], *[""] * (columns - len(row)), *row[1:]]


def plots(model: Model) -> Figures:
    """Plot the latency of a file by percentile."""
    index = {name: number for number, name in enumerate(model.targets)}
    figures = []
    for stage, words in STAGES.items():
        curves = [
            (line.target, index[line.target], line.curve) for line in model.of("small_files", stage=stage) if line.curve
        ]
        if curves:
            title = f"{words}: time of a file"
            figures.append(Figure(percentiles(title, curves, "latency", seconds), f"{title}, by percentile"))
    return Figures(figures, "Time of a file", "", model.targets)


def published() -> list[Block]:
    """Render the published measurement."""
    rows: list[list[str | Cell]] = []
    for stage, found in SMALL_FILES.items():
        rows += [[stage, name, f"{rate:g} MB/s", f"{over:.2f}x"] for name, rate, over in found]
    note = "The Linux 4.7.2 tree unpacked; then 16 readers of 10,000 files. Another machine."
    table = Table(["Stage", "File system", "Throughput", "Improvement"], rows, "As published", note, 2)
    return [table, cite(SMALL_FILES_SOURCE)]
