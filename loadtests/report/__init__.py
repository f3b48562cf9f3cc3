"""The report of a run: report.html, report.md and report.json beside its rows.

`reading` streams the rows into `model`; `uses` and `verdict` judge it by `noise`; `chapters` make tables and plots of
it, which `html` and `markdown` write down. `pairs` sets two runs beside each other.
"""

from __future__ import annotations

from loadtests.report.writing import write_report

__all__ = ["write_report"]
