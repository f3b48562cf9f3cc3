"""Settings of load tests in the console: a part of `Settings`."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


def bench_targets_in(text: str) -> dict[str, str]:
    """Return paths and URLs by name from a text such as `efs=/mnt/efs,minio=http://127.0.0.1:9002`.

    Raises ValueError.
    """
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, where = map(str.strip, entry.partition("="))
        if not _NAME.fullmatch(name) or name in found:
            raise ValueError(f"bench_targets: {name!r}: a name has small letters, digits and dashes, and stands once")
        if not (where.startswith("/") or _is_endpoint(where)):  # without the value: a URL may hold a secret
            raise ValueError(f"bench_targets: {name} is neither an absolute path nor http://HOST[:PORT]")
        found[name] = where
    return found


def _is_endpoint(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port_is_good = parts.port != 0
    except ValueError:
        return False
    bare = parts.path in ("", "/") and not parts.query and not parts.fragment and "@" not in parts.netloc
    return parts.scheme in ("http", "https") and bool(parts.hostname) and bare and port_is_good


class LoadTestSettings(BaseSettings):
    """What load tests of the console may measure beside the stores, and how many are kept."""

    bench_targets: str = Field(
        "",
        description="What the console may run load tests on beside the stores, e.g. "
        "`efs=/mnt/efs,minio=http://127.0.0.1:9002`: directories, and S3 endpoints, whose keys are `AWS_ACCESS_KEY_ID` "
        "and `AWS_SECRET_ACCESS_KEY` of the gateway's environment.",
    )
    bench_history: int = Field(
        20, ge=1, le=1000, description="Load tests of the console that are kept; the oldest are removed."
    )

    @field_validator("bench_targets")
    @classmethod
    def _check_bench_targets(cls, text: str) -> str:
        bench_targets_in(text)
        return text

    @property
    def named_bench_targets(self) -> dict[str, str]:
        """Paths and URLs by name."""
        return bench_targets_in(self.bench_targets)
