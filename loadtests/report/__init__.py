"""The report of a run: report.html, report.md and report.json beside its rows.

`loader` streams the rows into `model`; `use_cases` and `verdict` judge it by `significance`; `chapters` render it as
tables and plots, which `html` and `markdown` write. `comparison` compares two runs.
"""

from __future__ import annotations

from sluice_s3.loadtests.report.writer import write_report

__all__ = ["write_report"]
