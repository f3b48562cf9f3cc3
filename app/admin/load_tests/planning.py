"""What is asked for, as options of `sluice bench`, and what that command says of it, as the API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluice_s3.app.admin.load_tests.models import LoadTestIn, PlaceOut, PreviewOut, TargetOut
from sluice_s3.app.admin.load_tests.targets import Target

MIB = 1024 * 1024
SPARE_BYTES = 256 * MIB
"""Bytes that a load test leaves free on the file system of a store beyond those that the store wants free."""


def bench_options(asked: LoadTestIn) -> list[str]:
    """Return the options of `sluice bench` for all but the targets."""
    words = [word for name in asked.scenarios for word in ("--scenario", name)]
    words += ["--minutes", f"{asked.minutes:g}", "--durability", asked.durability]
    words += ["--users", str(asked.users)] if asked.users is not None else []
    return [*words, *(["--direct"] if asked.direct else [])]


def target_out(target: Target, place: Mapping[str, Any] | None) -> TargetOut:
    """Return a target as it is now; `place` is what `sluice bench` saw of it."""
    found = {name: (place or {}).get(name) for name in TargetOut.model_fields}
    seen = {name: value for name, value in found.items() if value}
    where = str(target.directory or target.url)
    fixed = {
        "name": target.name,
        "kind": target.kind,
        "where": where,
        "driver": target.driver or seen.get("driver", ""),
    }
    return TargetOut.model_validate({**seen, **fixed, "problem": target.problem or seen.get("problem", "")})


def make_preview(found: Mapping[str, Any], chosen: Mapping[str, Target]) -> PreviewOut:
    """Return what a run would do, with what forbids it."""
    places, problems = [], []
    for place in found["places"]:
        target = chosen[place["name"]]
        out = PlaceOut(**target_out(target, place).model_dump(), needed=place["needed"])
        left = out.free - out.needed
        if not out.problem and target.directory is not None and left < target.reserve + SPARE_BYTES:
            out.problem = (
                f"no space: {out.needed // MIB:,} MiB are written, {out.free // MIB:,} MiB are free, and "
                f"{(target.reserve + SPARE_BYTES) // MIB:,} MiB of them must stay free"
            )
        places.append(out)
        problems += [f"{out.name}: {out.problem}."] if out.problem else []
    return PreviewOut(
        seconds=found["seconds"], repeats=found["repeats"], places=places, problems=problems, warnings=found["warnings"]
    )
