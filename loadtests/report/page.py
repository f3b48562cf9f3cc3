"""The page of a run: its first screen and its chapters."""

from __future__ import annotations

from sluice_s3.loadtests.report.chapters import chapters
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Page
from sluice_s3.loadtests.report.first_screen import headline
from sluice_s3.loadtests.report.first_screen.cards import cards
from sluice_s3.loadtests.report.first_screen.picture import picture


def page_of(report: Report) -> Page:
    """Return the parts of the page, in the order in which they are read."""
    return Page(
        headline.title(report),
        headline.lead(report),
        headline.facts(report),
        report.options.note,
        report.model.partial,
        headline.doubts(report),
        picture(report),
        [cards(report)],
        chapters(report),
    )
