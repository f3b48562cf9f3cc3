"""Files of a size written by 1 to 1024 writers: MB/s of each and of all, and where it stays (as published for EFS).

locust -f loadtests/scenarios/threads.py --host http://127.0.0.1:9000 -u 1 --sizes 500KB --numbers 1,8,64
"""

import time
from typing import Any

from locust import events

from loadtests.objects import Objects
from loadtests.payload import parse_size, parse_sizes
from loadtests.user import ScriptUser


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--sizes", type=str, default="500KB,1MB", help="With commas between them.")
    parser.add_argument("--numbers", type=str, default="1,2,4,8,16,32,64,128,1024", help="Of writers.")
    parser.add_argument("--step-seconds", type=float, default=5.0, help="Of one size by one number of writers.")
    parser.add_argument("--most", type=str, default="1GB", help="A step ends before them when it wrote so many bytes.")


class Threads(ScriptUser):
    """Stages `writers-1` and so on. A writer ends the file it is at when the time is over."""

    def script(self) -> None:
        options = self.session.options
        number, processes = self.session.share
        most = parse_size(options.most) // processes
        for size in parse_sizes(options.sizes):
            for writers in (int(one) for one in options.numbers.split(",")):
                self._step(size, writers, max(most, 2 * size), f"threads/{number}-{size}-{writers}")

    def _step(self, size: int, writers: int, most: int, prefix: str) -> None:
        written: list[str] = []
        deadline = time.perf_counter() + self.session.options.step_seconds

        def write(objects: Objects, _: int) -> None:
            first = True
            while first or (time.perf_counter() < deadline and len(written) * size < most):
                first = False
                written.append(f"{prefix}/{len(written)}")
                self.do("PUT", written[-1], size, stage=f"writers-{writers}", users=writers, objects=objects)

        self.together(writers, write)
        self.remove(written)
