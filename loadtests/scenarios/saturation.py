"""How many clients a store bears: they double until the 99th percentile is too high or throughput grows no more.

    locust -f loadtests/scenarios/saturation.py --host http://127.0.0.1:9000 --headless -u 64 --p99-ms 50 -t 10s

Each step is measured for `-t` (or `--duration`) seconds.
"""

import logging
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from sluice_s3.loadtests.coordination import StageResult
from sluice_s3.loadtests.mixed_user import MixUser, mix_options
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.player import Stage
from sluice_s3.loadtests.shapes import StagedShape, describe

logger = logging.getLogger(__name__)
OPTIONS = Options(
    Option("p99-ms", 50.0, "The highest 99th percentile that will do, in milliseconds, of all operations together."),
    Option("settle", 1.0, "Seconds of each step that are not recorded."),
)
GROWTH = 1.05
"""Throughput grows if it is so many times the best so far."""
KNEE = 0.9
"""Share of the best throughput from which more clients gain little."""
PATIENCE = 2
"""Steps in a row without growth that end it: one may be noise."""
BAD_SHARE = 0.01
"""With a larger share of errors a step is one too many."""


class FindKnee(StagedShape):
    """1, 2, 4 … clients, `--users` at most."""

    def next_stage(self, results: Sequence[StageResult]) -> Stage | None:
        """See `StagedShape`."""
        if results and self.reason(results):
            return None
        users = min(self.users, results[-1].stage.users * 2) if results else 1
        return self.stage(f"clients-{users}", users, OPTIONS.of(self.options).settle)

    def reason(self, results: Sequence[StageResult]) -> str:
        """Return why the last step is the last one; empty if it is not."""
        last, limit = results[-1], float(OPTIONS.of(self.options).p99_ms)
        if not last.times.count or last.errors > BAD_SHARE * (last.errors + last.times.count):
            return f"{last.errors:,} requests of {last.stage.users} clients failed"
        if last.p99 * 1000 > limit:
            return (
                f"with {last.stage.users} clients the 99th percentile is {last.p99 * 1000:.1f} ms, above {limit:g} ms"
            )
        if len(results) > PATIENCE and max(one.rate for one in results[-PATIENCE:]) < GROWTH * max(
            one.rate for one in results[:-PATIENCE]
        ):
            return f"from {results[-PATIENCE - 1].stage.users} clients on throughput grows no more"
        return f"{self.users} clients were reached" if last.stage.users >= self.users else ""

    def conclude(self, results: Sequence[StageResult]) -> dict[str, Any]:
        """Name the knee, and the step with the most clients before the 99th percentile passes its limit."""
        limit, reason = float(OPTIONS.of(self.options).p99_ms), self.reason(results)
        best = max(one.rate for one in results)
        knee = next(one for one in results if one.rate >= KNEE * best)
        served = [one.stage.users for one in takewhile(lambda one: one.p99 * 1000 <= limit, results)]
        logger.info("it ended: %s", reason)
        logger.info("the knee is at %d clients: %s", knee.stage.users, describe(knee))
        logger.info("clients served within a 99th percentile of %g ms: %s", limit, served[-1] if served else "none")
        steps = [{"users": one.stage.users, "rate": one.rate, "p99": one.p99, "errors": one.errors} for one in results]
        return {"knee": knee.stage.users, "reason": reason, "p99_ms": limit, "steps": steps}


class Saturation(MixUser):
    """The mix of `mixed`, of objects of 64 KiB."""

    own_options = mix_options("64KiB", 200)
    shape = FindKnee
