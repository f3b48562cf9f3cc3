"""Settings of backing stores: of each one, and what all of them inherit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_settings import BaseSettings

from sluice_s3.app.settings.limits import KIB, MIB

StoreName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}$")]


def fill_missing(model: BaseModel, state: dict[str, Any]) -> dict[str, Any]:
    """Return the pickled state of a model, with the defaults of fields that it lacks and without cached values.

    SIGHUP has a launcher that runs the code of before pickle its settings for workers that run this code.
    """
    found, fields = state["__dict__"], type(model).model_fields
    values = {
        name: found[name] if name in found else field.get_default(call_default_factory=True)
        for name, field in fields.items()
    }
    return {**state, "__dict__": values}


class StoreSettings(BaseModel):
    """One backing store.

    What it leaves out is taken from the settings of all stores. Sizes are bytes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    driver: str = Field("local", description="`local`, `efs`, `fuse` or `fsspec`; `faulty` for tests.")
    path: Path | None = Field(None, description="Directory of the store.")
    url: str | None = Field(None, description="URL of the store, for drivers that need no directory.")
    layout: Literal["objects", "tree"] = Field("objects", description="How data lies in the directory.")
    durability: Literal["full", "relaxed"] | None = None
    etag: Literal["md5", "crc64nvme"] | None = None
    pack_threshold: int | None = Field(None, ge=0, le=MIB // 4)
    pack_size: int | None = Field(None, ge=MIB, le=64 * 1024 * MIB)
    io_threads: int | None = Field(None, ge=2, le=1024)
    read_cache: int | None = Field(None, ge=0)
    read_back: bool = Field(False, description="Read what was written again before it counts as durable.")
    hang_timeout: float | None = Field(None, gt=0)
    options: dict[str, Any] = Field({}, description="Of a store with a URL: what its file system is made with.")
    max_bytes: int | None = Field(None, ge=0, description="Past this many bytes of objects and parts it takes no more.")
    min_free: int = Field(0, ge=0, description="With less space left on its filesystem it takes no more.")

    @model_validator(mode="after")
    def _check(self) -> StoreSettings:
        if (self.path is None) == (self.url is None):
            raise ValueError("give path or url")
        if self.url is not None and (self.pack_threshold or self.pack_size is not None):
            raise ValueError("a store with a url has no packs")
        if self.url is not None and self.min_free:
            raise ValueError("min_free: how much is free is not known of a store with a url")
        if self.url is not None and self.read_back:
            raise ValueError("read_back is for a store with a path")
        if self.path is not None and self.options:
            raise ValueError("options are for a store with a url")
        if self.layout == "tree" and self.path is None:
            raise ValueError("the layout tree needs a path")
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `fill_missing`."""
        super().__setstate__(fill_missing(self, state))

    @property
    def directory(self) -> Path | None:
        """The directory of everything but plain files: no bucket's name begins with a dot."""
        return self.path / ".sluice" if self.path is not None and self.layout == "tree" else self.path


class StoreDefaults(BaseSettings):
    """What holds for every store, or for each that does not say otherwise. Sizes are bytes and times are seconds."""

    io_threads: int = Field(32, ge=2, le=1024, description="Threads a worker uses for the backing store.")
    etag: Literal["md5", "crc64nvme"] = Field(
        "md5",
        description="What ETags of new objects are made of. `crc64nvme` saves the MD5, half of the CPU of a large PUT; "
        "clients cannot compare ETags with MD5s then.",
    )
    hang_timeout: float = Field(
        10, gt=0, description="A store that does not answer for this long is out of service until it does."
    )
    pack_threshold: int = Field(
        128 * KIB,
        ge=0,
        le=MIB // 4,
        description="Bodies up to this many bytes share append-only files (packs); 0 gives each a file of its own.",
    )
    pack_size: int = Field(
        256 * MIB, ge=MIB, le=64 * 1024 * MIB, description="Bytes at which a pack is closed and the next one begun."
    )
    read_cache: int = Field(
        256 * MIB,
        ge=0,
        description="Bytes of small objects that the workers keep in memory together, of each store of driver `efs` or "
        "`fuse`; 0: none.",
    )
    compaction_rate: int = Field(
        32 * MIB,
        ge=0,
        description="Bytes a second that compaction moves at most out of packs that are mostly dead; 0 moves none.",
    )
    discard_grace: float = Field(5, ge=0, description="Replaced and deleted data is kept this long at least.")
    scrub_rate: int = Field(
        10 * MIB, ge=0, description="Bytes a second that the scrubber reads again in the background; 0 turns it off."
    )
    tree_scan_interval: float = Field(
        300,
        ge=0,
        description="Layout `tree`: all files are looked at this often for others' changes; 0: only when read.",
    )
