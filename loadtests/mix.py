"""warp's mix of operations, on objects that are there before the clock starts."""

from __future__ import annotations

from typing import Any

from locust import events, task
from locust.exception import StopUser

from loadtests.objects import run_many
from loadtests.payload import parse_size
from loadtests.pool import Pool, chosen, parse_mix
from loadtests.user import S3User

PREPARERS = 8


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--size", type=str, default="10MiB", help="Of every object.")
    parser.add_argument("--mix", type=str, default="", help="Shares of operations: GET=90,PUT=10. Default: warp's.")
    parser.add_argument("--objects", type=int, default=100, help="Objects that are there before the clock starts.")


class MixUser(S3User):
    """One operation after another, chosen by the mix."""

    abstract = True
    pool: Pool | None = None

    def on_start(self) -> None:
        """The first user puts the objects."""
        self.size, self.mix = parse_size(self.session.options.size), parse_mix(self.session.options.mix)
        self.session.begin_once(self.prepare)

    def prepare(self) -> str:
        """Objects to begin with: this process's share."""
        number, processes = self.session.share
        pool = type(self).pool = Pool(f"mix-{number}")
        problem = self.session.connect().prepare()
        if problem:
            return problem
        count = max(self.session.users, self.session.options.objects) // processes
        names = [pool.name() for _ in range(count)]
        problems = run_many(self.session.connect, "put", names, PREPARERS, self.size)
        for name in names:
            pool.add(name)
        return next(filter(None, problems), "")

    @task
    def one(self) -> None:
        """One operation."""
        pool = self.pool
        assert pool is not None
        if self.session.over:
            raise StopUser
        operation = chosen(self.mix)
        if operation == "PUT":
            name = pool.name()
            if not self.do("PUT", name, self.size).error:
                pool.add(name)
        elif operation == "DELETE":
            taken = pool.take()
            if taken:
                self.do("DELETE", taken)
        else:
            with pool.use() as name:
                if name:
                    self.do(operation, name, self.size if operation == "GET" else 0)
