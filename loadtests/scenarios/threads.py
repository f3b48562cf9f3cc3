"""Files of a size written by 1 to 1024 writers: MB/s of each and of all, and where it stays (as published for EFS).

locust -f loadtests/scenarios/threads.py --host http://127.0.0.1:9000 -u 1 --sizes 500KB --numbers 1,8,64
"""

import time

from sluice_s3.loadtests.clients.s3 import StorageClient
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_size, parse_sizes
from sluice_s3.loadtests.users import ScriptUser

OPTIONS = Options(
    Option("sizes", "500KB,1MB", "With commas between them."),
    Option("numbers", "1,2,4,8,16,32,64,128,1024", "Of writers."),
    Option("step-seconds", 5.0, "Of one size by one number of writers."),
    Option("most", "1GB", "A step ends before them when it wrote so many bytes."),
)


class Threads(ScriptUser):
    """Runs the stages `writers-1` and so on.

    A writer finishes its current file when the time is over.
    """

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        number, processes = self.session.share
        most = parse_size(options.most) // processes
        for size in parse_sizes(options.sizes):
            for writers in (int(one) for one in options.numbers.split(",")):
                self._step(size, writers, max(most, 2 * size), f"threads/{number}-{size}-{writers}")

    def _step(self, size: int, writers: int, most: int, prefix: str) -> None:
        written: list[str] = []
        deadline = time.perf_counter() + OPTIONS.of(self.session.options).step_seconds

        def write(objects: StorageClient, _: int) -> None:
            first = True
            while first or (time.perf_counter() < deadline and len(written) * size < most):
                first = False
                written.append(f"{prefix}/{len(written)}")
                self.do("PUT", written[-1], size, stage=f"writers-{writers}", users=writers, objects=objects)

        self.run_concurrently(writers, write)
        self.remove(written)
