"""The mix by few clients, then suddenly by many, then by few again: how long the spike is felt.

locust -f loadtests/scenarios/spike.py --host http://127.0.0.1:9000 --headless -u 64 --usual-users 4 -t 30s
"""

from collections.abc import Sequence

from sluice_s3.loadtests.coordination import StageResult
from sluice_s3.loadtests.mixed_user import MixUser, mix_options
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.player import Stage
from sluice_s3.loadtests.shapes import StagedShape

OPTIONS = Options(Option("usual-users", 4, "Clients before and after the spike."))
STAGES = ("before", "spike", "after")


class Peak(StagedShape):
    """`--usual-users`, then `--users`, then `--usual-users`; the begin of each is recorded too."""

    def next_stage(self, results: Sequence[StageResult]) -> Stage | None:
        """See `StagedShape`."""
        if len(results) == len(STAGES):
            return None
        name = STAGES[len(results)]
        usual = max(1, min(self.users, OPTIONS.of(self.options).usual_users))
        return self.stage(name, self.users if name == "spike" else usual, 0.0)


class Spike(MixUser):
    """The mix of `mixed`, of objects of 64 KiB."""

    own_options = mix_options("64KiB", 200)
    shape = Peak
