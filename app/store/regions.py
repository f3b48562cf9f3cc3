"""Regions: the one that clients must sign with, and the one of a bucket."""

from __future__ import annotations

import re

from sluice_s3.app.index.buckets.rows import Bucket

ANY = "auto"
"""The setting that accepts signatures of any region."""
FIRST = "us-east-1"
"""The region of buckets that name none, where any is accepted."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def is_accepted(name: str, required: str | None) -> bool:
    """Return whether a client may name this region; any is accepted when `required` is None."""
    return _NAME.fullmatch(name) is not None if required is None else name == required


class Regions:
    """The regions of one gateway."""

    def __init__(self, setting: str) -> None:
        self.required = None if setting == ANY else setting
        """The region of all signatures; None accepts any."""
        self.default = FIRST if setting == ANY else setting
        """The region of buckets that name none, and of requests outside of buckets."""

    def named(self, constraint: str) -> str:
        """Return the region that a LocationConstraint names (`REGION` or `REGION:STORE`, empty for none)."""
        return constraint.partition(":")[0] or self.default

    def of(self, bucket: Bucket) -> str:
        """Return the region with which clients must sign requests to a bucket."""
        return bucket.region if self.required is None else self.required

    def accepts(self, name: str) -> bool:
        """Return whether a client may name this region."""
        return is_accepted(name, self.required)

    def are_apart(self, one: Bucket, other: Bucket) -> bool:
        """Return whether two buckets are in different regions, if regions matter at all."""
        return self.required is not None and one.region != other.region
