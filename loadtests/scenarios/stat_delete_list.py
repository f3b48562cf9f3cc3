"""STAT, LIST and DELETE in a bucket of 1,000, 100,000 and 1,000,000 keys, by one client.

locust -f loadtests/scenarios/stat_delete_list.py --host http://127.0.0.1:9000 -u 1 --counts 1000,100000
"""

import random

from sluice_s3.loadtests.clients.s3 import PAGE_KEYS
from sluice_s3.loadtests.options import Option, Options
from sluice_s3.loadtests.payload import parse_size
from sluice_s3.loadtests.users import ScriptUser

OPTIONS = Options(
    Option("counts", "1000", "Keys in the bucket, ascending."),
    Option("size", "1KB", "Of an object."),
    Option("stats", 200, "At each count."),
    Option("lists", 20, "Pages of 1000 keys at each count."),
    Option("deletes", 100, "At each count."),
)


class StatDeleteList(ScriptUser):
    """Runs the stages `keys-1000` and so on.

    Each process has its share of a bucket for itself.
    """

    def script(self) -> None:
        """See `ScriptUser`."""
        options = OPTIONS.of(self.session.options)
        number, processes = self.session.share
        size, there = parse_size(options.size), 0
        prefix = f"keys-{number}/"
        for count in (int(one) // processes for one in options.counts.split(",")):
            names = [f"{prefix}{key:09d}" for key in range(there, count)]
            problem = self.session.put_objects(names, size)
            if problem:
                self.session.give_up(f"the bucket cannot be filled: {problem}")
                return
            there = max(there, count)
            self._measure(prefix, there, f"keys-{there * processes}", size)

    def _measure(self, prefix: str, there: int, stage: str, size: int) -> None:
        options = OPTIONS.of(self.session.options)
        users = self.session.share[1]
        for _ in range(options.stats):
            self.do("STAT", f"{prefix}{random.randrange(there):09d}", stage=stage, users=users)
        for _ in range(options.lists):
            after = f"{prefix}{random.randrange(max(1, there - PAGE_KEYS)):09d}"
            self.do("LIST", prefix, PAGE_KEYS, stage=stage, users=users, after=after)
        gone = random.sample(range(there), min(there, options.deletes))
        for key in gone:
            self.do("DELETE", f"{prefix}{key:09d}", stage=stage, users=users)
        for key in gone:
            self.objects.put(f"{prefix}{key:09d}", size)
