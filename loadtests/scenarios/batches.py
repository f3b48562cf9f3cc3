"""Ten files of one size, one after another, five times with pauses (as published for EFS elastic and bursting).

locust -f loadtests/scenarios/batches.py --host http://127.0.0.1:9000 -u 1 --sizes 1KB,1MB,100MB --pause 10
"""

from typing import Any

import gevent
from locust import events

from loadtests.payload import parse_sizes
from loadtests.user import ScriptUser


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--sizes", type=str, default="1KB,1MB,100MB", help="With commas between them.")
    parser.add_argument("--files", type=int, default=10, help="Of a batch.")
    parser.add_argument("--batches", type=int, default=5, help="Of a size.")
    parser.add_argument("--pause", type=float, default=10.0, help="Seconds between two batches.")


class Batches(ScriptUser):
    """Stages `batch-1` and so on."""

    def script(self) -> None:
        options = self.session.options
        for size in parse_sizes(options.sizes):
            for batch in range(1, options.batches + 1):
                keys = self.mine([f"batches/{size}-{batch}-{number}" for number in range(options.files)])
                for key in keys:
                    self.do("PUT", key, size, stage=f"batch-{batch}", users=self.session.share[1])
                gevent.sleep(options.pause)
                for key in keys:
                    self.objects.delete(key)
