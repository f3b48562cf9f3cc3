"""A mix of operations on objects that exist before the clock starts; by default warp's."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import gevent
from locust import events, tag, task
from locust.env import Environment
from locust.runners import WorkerRunner
from locust.user.task import filter_tasks_by_tags

from sluice_s3.loadtests.clients.s3 import PAGE_KEYS
from sluice_s3.loadtests.object_pool import ObjectPool, parse_mix, whole_shares
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_size
from sluice_s3.loadtests.session import GAVE_UP, Session
from sluice_s3.loadtests.users import S3User

logger = logging.getLogger(__name__)


def mix_options(size: str = "10MiB", objects: int = 100) -> Options:
    """Return the options of a mix with these defaults."""
    return Options(
        Option("size", size, "Of every object."),
        Option("mix", "", "Shares of operations: GET=90,PUT=10. Default: the tasks' weights, which are warp's mix."),
        Option("objects", objects, "Objects that are there before the clock starts."),
        Option("throughput", 0.0, "Operations a second of each user, however slow; 0: one after another."),
    )


OPTIONS = mix_options()


class MixUser(S3User):
    """A user that does one operation after another; the weights are warp's mix."""

    abstract = True
    exclusive = True
    timed = True
    closed_loop = True
    own_options: ClassVar[Options] = OPTIONS
    pool: ClassVar[ObjectPool] = ObjectPool("")
    """The objects of this process."""
    mix = ""
    """The `--mix` that the tasks' weights follow."""

    @classmethod
    def prepare(cls, session: Session) -> str:
        """Put this process's share of the initial objects. Returns why it cannot, or an empty string."""
        number, processes = session.share
        pool = cls.pool = ObjectPool(f"mix-{number}")
        problem = session.connect().prepare()
        if problem:
            return problem
        count = max(session.users, cls.own_options.of(session.options).objects) // processes
        names = [pool.name() for _ in range(count)]
        problem = session.put_objects(names, parse_size(cls.own_options.of(session.options).size))
        for name in names:
            pool.add(name)
        return problem

    def on_start(self) -> None:
        """Wait until the objects of all processes are there."""
        options = self.own_options.of(self.session.options)
        self.size = parse_size(options.size)
        self.session.ready.wait()
        self.set_pace(options.throughput)

    @tag("get")
    @task(45)
    def get(self) -> None:
        """Read an object."""
        with self.pool.use() as name:
            if name:
                self.do("GET", name, self.size)

    @tag("stat")
    @task(30)
    def stat(self) -> None:
        """Read an object's size and times only."""
        with self.pool.use() as name:
            if name:
                self.do("STAT", name)

    @tag("put")
    @task(15)
    def put(self) -> None:
        """Write a new object."""
        name = self.pool.name()
        if not self.do("PUT", name, self.size).error:
            self.pool.add(name)

    @tag("delete")
    @task(10)
    def delete(self) -> None:
        """Delete an object that nobody reads."""
        name = self.pool.take()
        if name:
            self.do("DELETE", name)

    @tag("list")
    @task(0)
    def list(self) -> None:
        """List a page of keys; warp's mix has none."""
        with self.pool.use() as name:
            self.do("LIST", self.pool.prefix, PAGE_KEYS, after=name)

    @classmethod
    def weigh(cls, options: Any) -> None:
        """Give the tasks the weights of `--mix`; with `--tags` alone, tasks of no weight are all alike.

        Raises ValueError for a mix that is none, or if the tags leave nothing.
        """
        methods = [cls.get, cls.stat, cls.put, cls.delete, cls.list]
        tags, excluded = set(options.tags or ()), set(options.exclude_tags or ())
        mix = cls.own_options.of(options).mix
        if mix != cls.mix:
            shares = whole_shares(parse_mix(mix))
            cls.tasks = [one for one in methods for _ in range(shares.get(one.__name__.upper(), 0))]
            cls.mix = mix
        elif not mix and tags and not any(one.locust_tag_set & tags for one in cls.tasks):  # type: ignore[union-attr]
            cls.tasks = [*methods]
        if tags or excluded:
            filter_tasks_by_tags(cls, tags or None, excluded or None)
        if not cls.tasks:
            raise ValueError("--tags, --exclude-tags and --mix leave no operation")


def _weigh(environment: Environment) -> str:
    """Weigh the tasks of the chosen mixes. Returns why it cannot, or an empty string."""
    try:
        for one in environment.user_classes:
            if issubclass(one, MixUser):
                one.weigh(environment.parsed_options)
    except ValueError as error:
        return str(error)
    return ""


@events.init.add_listener  # type: ignore[untyped-decorator]
def _on_init(environment: Environment, **_: Any) -> None:
    problem = _weigh(environment)  # before the page shows the ratios
    if problem and not isinstance(environment.runner, WorkerRunner):
        logger.error("%s", problem)
        raise SystemExit(GAVE_UP)


@events.test_start.add_listener  # type: ignore[untyped-decorator]
def _on_test_start(environment: Environment, **_: Any) -> None:
    problem = _weigh(environment)  # the page's form may have another mix
    if problem and environment.runner is not None and not isinstance(environment.runner, WorkerRunner):
        logger.error("%s", problem)
        gevent.spawn(environment.runner.stop)
