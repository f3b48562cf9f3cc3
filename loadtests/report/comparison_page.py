"""Two runs beside each other as a page in the look of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sluice_s3.loadtests.report import html, significance
from sluice_s3.loadtests.report.comparison import Pair, Pairs
from sluice_s3.loadtests.report.console import difference
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Page, Remark, Table, Track, Tracks
from sluice_s3.loadtests.report.plots.tracks import bar
from sluice_s3.loadtests.report.units import percent
from sluice_s3.loadtests.report.verdict import join_names
from sluice_s3.loadtests.report.writer import put

CALLS = {"too noisy": "too noisy to call", "too few repeats": "fewer than three repeats"}


def write_comparison(found: Pairs, directory: Path) -> Path:
    """Write the page into the directory of the second run. Return the file. Raises OSError."""
    file = directory / f"compared-with-{_plain(found.a)}.html"
    put(file, html.render_page(comparison_page(found)))
    return file


def comparison_page(found: Pairs) -> Page:
    """Return the page of two runs."""
    targets = list(dict.fromkeys(one.target for one in found.pairs))
    how = (
        f"Speed of B against A, with {significance.LEVEL:.0%} bootstrap intervals over the repeats (99.5 % where a run "
        f"had minutes); less than {significance.MATTERS:.0%} is no difference. More is faster."
    )
    blocks: list[Block] = [change_table(found, [name]) for name in targets]
    return Page(
        f"{found.a} vs {found.b}",
        f"From A to B: {lead_of(found)}",
        [f"A = {found.a}", f"B = {found.b}", f"{len(targets)} target{'' if len(targets) == 1 else 's'}"],
        doubts=[("the runs differ", f"{remark[0].upper()}{remark[1:]}.") for remark in found.remarks],
        first=[_picture(found, targets)] if found.pairs else [],
        chapters=[Chapter("figures", "All figures", "", [*blocks, Remark(how)], "open")],
    )


def lead_of(found: Pairs) -> str:
    """Return what differs in one sentence."""
    uses = [one for one in found.pairs if not one.figure]
    changed = [one for one in uses if one.over.sure]
    if changed:
        parts = []
        for call in ("slower", "faster"):
            own = [f"{one.target} in {one.use.lower()}{_by(one)}" for one in changed if one.over.call == call]
            parts += [f"{call}: {join_names(own)}"] if own else []
        return f"{'; '.join(parts)}."
    if any(one.over.call == "no difference" for one in uses):
        quiet = sum(one.over.call == "no difference" for one in uses)
        return f"no difference that matters in {quiet} of {len(uses)} uses; nothing else could be called."
    return "nothing can be called: too much noise, or too few repeats."


def change_table(found: Pairs, targets: Sequence[str] = (), *, uses_only: bool = False) -> Table:
    """Render the pairs of these targets (none: of all)."""
    rows: list[list[str | Cell]] = []
    for one in found.pairs:
        if (targets and one.target not in targets) or (uses_only and one.figure):
            continue
        mark = {"faster": "best", "slower": "bad"}.get(one.over.call, "quiet")
        name = f"· {one.figure}" if one.figure else one.use
        words = CALLS.get(one.over.call, one.over.call)
        row: list[str | Cell] = [name, Cell(words, mark), one.a, one.b, difference(one.over)]
        rows.append(row if len(targets) == 1 else [one.target, *row])
    head = ["Figure", "B is", "A", "B", "Speed of B against A"]
    if len(targets) == 1:
        return Table(head, rows, targets[0], texts=2)
    return Table(["Target", *head], rows, texts=3)


def _picture(found: Pairs, targets: Sequence[str]) -> Tracks:
    """Draw the speed of each use and target in both runs."""
    uses = [one for one in found.pairs if not one.figure and one.over.ratio]
    groups = [
        (one.use if len(targets) == 1 else f"{one.target}: {one.use}", "", _tracks(one, targets.index(one.target)))
        for one in uses
    ]
    note = "Speed against A. The line is the interval; coloured where the difference exceeds the noise."
    return Tracks(["Use", "Run", "Speed against A → more is faster"], groups, note=note)


def _tracks(one: Pair, index: int) -> list[Track]:
    ratio, low, high = one.over.ratio or 1.0, one.over.low, one.over.high
    top = max(1.0, ratio, high or 0.0)
    words = f"{difference(one.over)}, {CALLS.get(one.over.call, one.over.call)}"
    drawn = bar(f"B: {words}", ratio, low, high, top, index if one.over.sure else None)
    mark = "winner" if one.over.call == "faster" else ""
    return [Track("A", [(bar("A", 1.0, None, None, top, None), "")]), Track("B", [(drawn, words)], mark)]


def _by(one: Pair) -> str:
    return f" ({percent(one.over.ratio - 1, sign=True)})" if one.over.ratio else ""


def _plain(name: str) -> str:
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)
