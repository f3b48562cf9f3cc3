"""A mix of operations that arrive at a fixed rate whether or not the store keeps up: what it cannot do in time shows as
latency, which counts from when an operation was due.

    locust -f loadtests/scenarios/open_loop.py --host http://127.0.0.1:9000 -u 1 --rate 500 --duration 30
"""

import random
import time
from contextlib import closing
from typing import Any

from gevent.pool import Pool as Greenlets
from locust import events

from loadtests.alarm import Alarm
from loadtests.objects import Objects, run_many
from loadtests.payload import parse_size
from loadtests.pool import Pool, chosen, parse_mix
from loadtests.user import ScriptUser, perform


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--rate", type=float, default=100.0, help="Operations a second, of all processes together.")
    parser.add_argument("--size", type=str, default="4KiB", help="Of every object.")
    parser.add_argument("--mix", type=str, default="", help="Shares of operations: GET=90,PUT=10. Default: warp's.")
    parser.add_argument("--objects", type=int, default=200, help="Objects that are there before the clock starts.")
    parser.add_argument("--most-open", type=int, default=1000, help="Operations under way at once; more have to wait.")
    parser.add_argument("--regular", action="store_true", help="Even gaps, not those of a Poisson process.")


class OpenLoop(ScriptUser):
    """Begins each operation when it is due."""

    def script(self) -> None:
        options = self.session.options
        number, processes = self.session.share
        self.mix = parse_mix(options.mix)
        self.size, self.pool = parse_size(options.size), Pool(f"open-{number}")
        names = [self.pool.name() for _ in range(max(1, options.objects // processes))]
        problem = next(filter(None, run_many(self.session.connect, "put", names, 8, self.size)), "")
        if problem:
            self.session.give_up(f"the objects cannot be made: {problem}")
            return
        for name in names:
            self.pool.add(name)
        self.free: list[Objects] = []
        with closing(Alarm()) as self.alarm:
            self._run(options.rate / processes, max(1, options.most_open // processes))

    def _run(self, rate: float, most: int) -> None:
        options = self.session.options
        greenlets = Greenlets(most)
        due = time.perf_counter()
        self.session.measure_from(due + options.warm_up)
        end = due + options.warm_up + options.duration if options.duration else float("inf")
        while due < end and not self.session.over:
            self.alarm.wait_until(due)
            greenlets.spawn(self._one, due)
            due += 1 / rate if options.regular else random.expovariate(rate)
        greenlets.join(timeout=options.patience)
        greenlets.kill()

    def _one(self, due: float) -> None:
        objects = self.free.pop() if self.free else self.session.connect()
        operation = chosen(self.mix)
        if operation == "PUT":
            name = self.pool.name()
            if not self._do(objects, operation, name, self.size, due):
                self.pool.add(name)
        elif operation == "DELETE":
            name = self.pool.take()
            if name:
                self._do(objects, operation, name, 0, due)
        else:
            with self.pool.use() as name:
                if name:
                    self._do(objects, operation, name, self.size if operation == "GET" else 0, due)
        self.free.append(objects)

    def _do(self, objects: Objects, operation: str, name: str, size: int, due: float) -> str:
        late = max(0.0, time.perf_counter() - due)
        done = perform(objects, operation, name, size)
        done = done._replace(total=done.total + late)
        self.session.record(operation, done, size, due, late=late, rest=False)
        return done.error
