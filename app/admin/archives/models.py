"""Requests and answers about archives."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

MAX_KEYS = 1000
MAX_PREFIXES = 100

Key = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Prefix = Annotated[str, StringConstraints(max_length=1024)]


class ArchiveIn(BaseModel):
    """A selection: objects by their keys, and all that is below some prefixes."""

    model_config = ConfigDict(extra="forbid")

    bucket: str = Field(min_length=3, max_length=63, pattern=r"^[a-z0-9.-]+$")
    keys: list[Key] = Field(default=[], max_length=MAX_KEYS)
    prefixes: list[Prefix] = Field(default=[], max_length=MAX_PREFIXES, description="An empty one is the whole bucket.")
    root: Prefix = Field(default="", description="What the names in the archive leave out at their beginning.")

    @model_validator(mode="after")
    def _names_something(self) -> ArchiveIn:
        if not self.keys and not self.prefixes:
            raise ValueError("name a key or a prefix")
        return self


class ArchiveOut(BaseModel):
    """What an archive would cost, and the ticket for its one download."""

    ticket: str
    path: str = Field(description="Where it can be fetched once, with the same session.")
    name: str = Field(description="The name of the file.")
    objects: int
    bytes: int = Field(description="Bytes of the objects, before they are packed.")
    unreadable: int = Field(description="Keys of the selection that are not there or may not be read.")
    expires_in: int = Field(description="Seconds until the ticket ends.")


class ArchiveProgressOut(BaseModel):
    """How far the download of an archive is."""

    model_config = ConfigDict(from_attributes=True)

    state: Literal["waiting", "running", "done", "broken"] = Field(
        description="`broken`: its client left, or the gateway failed, before the end."
    )
    objects: int = Field(description="Objects that were read or failed.")
    bytes: int = Field(description="Bytes that were read of the objects, before they are packed.")
    failed: int = Field(description="Objects and listings that failed: `ERRORS.txt` names them.")
