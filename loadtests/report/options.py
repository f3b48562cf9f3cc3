"""What a user asks of a report, kept in `meta.json` of its run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report.cost.prices import Price

KEY = "report"
"""Where they are in the metadata of a run."""


class ReportOptions(BaseModel):
    """Options of a report: words above it, and the chapters that are not in every one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field("", max_length=200)
    note: str = Field("", max_length=2000)
    published: bool = False
    prices: dict[str, Price] = Field({}, max_length=100)

    def over(self, earlier: ReportOptions) -> ReportOptions:
        """Return these, and of the earlier ones what is not given here."""
        given = {name: getattr(self, name) for name in type(self).model_fields if getattr(self, name)}
        return earlier.model_copy(update=given)


def options_of(meta: Mapping[str, Any]) -> ReportOptions:
    """Return the options that a run was given. Raises PlanError if they cannot be read."""
    try:
        return ReportOptions.model_validate(meta.get(KEY) or {})
    except ValidationError as error:
        raise PlanError(f"the options of the report cannot be read: {error}") from error


def check_prices(options: ReportOptions, names: Collection[str]) -> None:
    """Raise PlanError for a price of a store that the run does not have."""
    for name in options.prices:
        if name not in names:
            raise PlanError(f"--cost: there is no store {name} in this run (there are {', '.join(names)})")
