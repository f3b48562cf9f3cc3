"""Write and read objects of several sizes, one client, one after another (as published for EBS, EFS and S3).

locust -f loadtests/scenarios/sizes.py --host http://127.0.0.1:9000 -u 1 --sizes 100KB,1MB,10MB --times 10
"""

from typing import Any

from locust import events

from loadtests.payload import parse_sizes
from loadtests.user import ScriptUser


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--sizes", type=str, default="100KB,1MB,10MB,100MB", help="With commas between them.")
    parser.add_argument("--times", type=int, default=10, help="How often each is written, and read.")
    parser.add_argument("--most", type=str, default="100GB", help="Bytes of one size at most; twice at least.")


class Sizes(ScriptUser):
    """All writes of a size, then all reads of it."""

    def script(self) -> None:
        options = self.session.options
        (most,) = parse_sizes(options.most)
        for size in parse_sizes(options.sizes):
            times = max(2, min(options.times, most // max(1, size)))
            keys = self.mine([f"sizes/{size}-{number}" for number in range(times)])
            for operation in ("PUT", "GET"):
                for key in keys:
                    self.do(operation, key, size, users=self.session.share[1])
            for key in keys:
                self.objects.delete(key)
