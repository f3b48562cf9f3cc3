"""Ten files of a size, several times with pauses."""

from __future__ import annotations

from sluice_s3.loadtests.report import significance, stats
from sluice_s3.loadtests.report.chapters.published import BATCHES, BATCHES_SOURCE, cite
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.units import percent, seconds, size
from sluice_s3.loadtests.report.use_cases import batch_times


def chapter(report: Report, scenario: str) -> Chapter:
    """Render the mean batch time, and its difference in percent from the first target."""
    model = report.model
    asked = model.meta["plan"]["scenarios"][scenario]["arguments"]
    about = "Ten files, one after the other; the time of all ten is averaged over "
    about += f"{asked.get('batches', '')} batches with {asked.get('pause', '')} s between them, in each repeat."
    sizes = sorted({line.size for line in model.of(scenario)})
    tables = [table(model, one) for one in sizes]
    return Chapter(scenario, "Batches", about, [*tables, *(published() if report.options.published else [])])


def table(model: Model, of_size: int) -> Table:
    """Render each target's batches of a size, and their difference from the first target."""
    rows: list[list[str | Cell]] = []
    first: dict[int, list[float]] = {}
    for name in model.targets:
        found = batch_times(model, name, of_size)
        values = [one for batches in found.values() for one in batches]
        if not values:
            continue
        spread = stats.spread(values)
        assert spread is not None
        row: list[str | Cell] = [name, str(spread.count)]
        row += [seconds(one) for one in (spread.mean, spread.sigma, spread.p50, spread.best, spread.worst)]
        rows.append([*row, *(difference(first, found) if first else ("", ""))])
        first = first or found
    head = [
        "Target",
        "batches",
        "average",
        "StdDev",
        "median",
        "fastest",
        "slowest",
        "Time difference",
        "outside the noise",
    ]
    return Table(head, rows, f"Writing 10 files, {size(of_size)} each", "The difference is to the first line.")


def difference(first: dict[int, list[float]], other: dict[int, list[float]]) -> tuple[str, str]:
    """Return the difference in percent of the first's time, and whether the repeats support it."""
    averages = [[stats.mean(batches) for batches in found.values()] for found in (first, other)]
    share = stats.mean(averages[1]) / stats.mean(averages[0]) - 1
    found = significance.compare(*([1 / one for one in series if one > 0] for series in averages))
    answers = {"faster": "yes", "slower": "yes", "no difference": "no", "too noisy": "too noisy to call"}
    return percent(share, sign=True), answers.get(found.call, found.call)


def published() -> list[Block]:
    """Render the published measurement."""
    rows: list[list[str | Cell]] = [
        [size(one), seconds(elastic), seconds(bursting), percent(elastic / bursting - 1, sign=True)]
        for one, (elastic, bursting) in BATCHES.items()
    ]
    note = "EFS from a Lambda, five batches with ten seconds between them."
    table = Table(["10 files of", "Elastic", "Bursting", "Time difference"], rows, "As published", note)
    return [table, cite(BATCHES_SOURCE)]
