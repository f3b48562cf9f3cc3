"""The mix with more clients from step to step.

locust -f loadtests/scenarios/steps.py --host http://127.0.0.1:9000 --headless -u 40 --step-users 10 -t 30s
"""

from collections.abc import Sequence

from sluice_s3.loadtests.coordination import StageResult
from sluice_s3.loadtests.mixed_user import MixUser, mix_options
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.player import Stage
from sluice_s3.loadtests.shapes import StagedShape

OPTIONS = Options(
    Option("step-users", 10, "Clients that each step adds."),
    Option("settle", 1.0, "Seconds of each step that are not recorded."),
)


class Stairs(StagedShape):
    """10, 20, 30 … clients, `--users` in the last step."""

    def next_stage(self, results: Sequence[StageResult]) -> Stage | None:
        """See `StagedShape`."""
        options, before = OPTIONS.of(self.options), results[-1].stage.users if results else 0
        if before >= self.users:
            return None
        users = min(self.users, before + max(1, options.step_users))
        return self.stage(f"clients-{users}", users, options.settle)


class Steps(MixUser):
    """The mix of `mixed`, of objects of 64 KiB."""

    own_options = mix_options("64KiB", 200)
    shape = Stairs
