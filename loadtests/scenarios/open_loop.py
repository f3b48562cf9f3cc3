"""A mix of operations that arrive at a fixed rate, however slow the store is.

What the store cannot do in time shows as latency, which counts from when an operation was due.

    locust -f loadtests/scenarios/open_loop.py --host http://127.0.0.1:9000 -u 1 --rate 500 --duration 30
"""

import random
import time
from contextlib import closing

from gevent.pool import Pool as Greenlets

from sluice_s3.loadtests.clients.precise_timer import PreciseTimer
from sluice_s3.loadtests.clients.s3 import PAGE_KEYS, StorageClient
from sluice_s3.loadtests.object_pool import ObjectPool, parse_mix, pick_operation
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_size
from sluice_s3.loadtests.users import ScriptUser, perform

OPTIONS = Options(
    Option("rate", 100.0, "Operations a second, of all processes together."),
    Option("size", "4KiB", "Of every object."),
    Option("mix", "", "Shares of operations: GET=90,PUT=10. Default: warp's."),
    Option("objects", 200, "Objects that are there before the clock starts."),
    Option("most-open", 1000, "Operations under way at once; more have to wait."),
    Option("regular", False, "Even gaps, not those of a Poisson process."),
)


class OpenLoop(ScriptUser):
    """Begins each operation when it is due."""

    timed = True

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        number, processes = self.session.share
        self.mix = parse_mix(options.mix)
        self.size, self.pool = parse_size(options.size), ObjectPool(f"open-{number}")
        names = [self.pool.name() for _ in range(max(1, options.objects // processes))]
        problem = self.session.put_objects(names, self.size)
        if problem:
            self.session.give_up(f"the objects cannot be made: {problem}")
            return
        for name in names:
            self.pool.add(name)
        self.free: list[StorageClient] = []
        with closing(PreciseTimer()) as self.alarm:
            self._start_operations(options.rate / processes, max(1, options.most_open // processes))

    def _start_operations(self, rate: float, most: int) -> None:
        options = OPTIONS.of(self.session.options)
        greenlets = Greenlets(most)
        due = time.perf_counter()
        self.session.measure_from(due + options.warm_up)
        seconds = self.session.seconds
        end = due + options.warm_up + seconds if seconds else float("inf")
        while due < end and not self.session.over:
            self.alarm.wait_until(due)
            greenlets.spawn(self._run_operation, due)
            due += 1 / rate if options.regular else random.expovariate(rate)
        greenlets.join(timeout=options.patience)
        greenlets.kill()

    def _run_operation(self, due: float) -> None:
        objects = self.free.pop() if self.free else self.session.connect()
        operation = pick_operation(self.mix)
        if operation == "PUT":
            name = self.pool.name()
            if not self._do(objects, operation, name, self.size, due):
                self.pool.add(name)
        elif operation == "DELETE":
            name = self.pool.take()
            if name:
                self._do(objects, operation, name, 0, due)
        elif operation == "LIST":
            with self.pool.use() as after:
                self._do(objects, operation, self.pool.prefix, PAGE_KEYS, due, after)
        else:
            with self.pool.use() as name:
                if name:
                    self._do(objects, operation, name, self.size if operation == "GET" else 0, due)
        self.free.append(objects)

    def _do(self, objects: StorageClient, operation: str, name: str, size: int, due: float, after: str = "") -> str:
        late = max(0.0, time.perf_counter() - due)
        result = perform(objects, operation, name, size, after)
        result = result._replace(total=result.total + late)
        self.session.record(operation, result, size, due, late=late, rest=False)
        return result.error
