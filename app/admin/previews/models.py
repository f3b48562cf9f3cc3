"""Answers about previews."""

from __future__ import annotations

from pydantic import BaseModel, Field


class Column(BaseModel):
    """A column of a table."""

    name: str
    type: str


class ParquetHeadOut(BaseModel):
    """The beginning of a Parquet object."""

    rows: int = Field(description="Rows of the whole object.")
    row_groups: int
    columns: list[Column] = Field(description="At most 100.")
    hidden_columns: int = Field(description="Columns beyond those.")
    head: list[list[str | None]] = Field(description="At most 100 rows; cells are text, cut after 200 characters.")
