"""warp's mix of operations, on objects that exist before the clock starts."""

from __future__ import annotations

from locust import task
from locust.exception import StopUser

from sluice_s3.loadtests.clients.s3 import run_concurrently
from sluice_s3.loadtests.object_pool import ObjectPool, parse_mix, pick_operation
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_size
from sluice_s3.loadtests.users import S3User

PREPARERS = 8


OPTIONS = Options(
    Option("size", "10MiB", "Of every object."),
    Option("mix", "", "Shares of operations: GET=90,PUT=10. Default: warp's."),
    Option("objects", 100, "Objects that are there before the clock starts."),
)


class MixUser(S3User):
    """A user that does one operation after another, chosen by the mix."""

    abstract = True
    exclusive = True
    timed = True
    pool: ObjectPool | None = None

    def on_start(self) -> None:
        """Put the initial objects, as the first user."""
        options = OPTIONS.of(self.session.options)
        self.size, self.mix = parse_size(options.size), parse_mix(options.mix)
        self.session.start_once(self.prepare)

    def prepare(self) -> str:
        """Put this process's share of the initial objects."""
        number, processes = self.session.share
        pool = type(self).pool = ObjectPool(f"mix-{number}")
        problem = self.session.connect().prepare()
        if problem:
            return problem
        count = max(self.session.users, OPTIONS.of(self.session.options).objects) // processes
        names = [pool.name() for _ in range(count)]
        problems = run_concurrently(self.session.connect, "put", names, PREPARERS, self.size)
        for name in names:
            pool.add(name)
        return next(filter(None, problems), "")

    @task
    def one(self) -> None:
        """Do one operation."""
        pool = self.pool
        assert pool is not None
        if self.session.over:
            raise StopUser
        operation = pick_operation(self.mix)
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
