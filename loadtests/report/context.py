"""All that a chapter is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.options import ReportOptions
from sluice_s3.loadtests.report.use_cases import Measure
from sluice_s3.loadtests.report.use_figures import UseFigures
from sluice_s3.loadtests.report.verdict import Verdict


@dataclass(frozen=True)
class Report:
    """A run with its verdict, its figures, and what the user asks."""

    model: Model
    verdict: Verdict
    options: ReportOptions = field(default_factory=ReportOptions)
    measures: Sequence[Measure] = ()
    figures: Sequence[UseFigures] = ()

    def winners(self, *figures: str) -> list[str]:
        """Return the targets that the verdict called the best in the use of a figure with such a beginning.

        Only they are marked in tables of single figures.
        """
        return [
            target
            for one in self.verdict.judgements
            if any(name.startswith(figures) for name in one.figures)
            for target in one.winners
        ]
