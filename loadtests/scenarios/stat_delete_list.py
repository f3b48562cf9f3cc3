"""STAT, LIST and DELETE in a bucket of 1,000, 100,000 and 1,000,000 keys, by one client.

locust -f loadtests/scenarios/stat_delete_list.py --host http://127.0.0.1:9000 -u 1 --counts 1000,100000
"""

import random
from typing import Any

from locust import events

from loadtests.objects import PAGE, run_many
from loadtests.payload import parse_size
from loadtests.user import ScriptUser

FILLERS = 16


@events.init_command_line_parser.add_listener
def _options(parser: Any) -> None:
    parser.add_argument("--counts", type=str, default="1000", help="Keys in the bucket, ascending.")
    parser.add_argument("--size", type=str, default="1KB", help="Of an object.")
    parser.add_argument("--stats", type=int, default=200, help="At each count.")
    parser.add_argument("--lists", type=int, default=20, help="Pages of 1000 keys at each count.")
    parser.add_argument("--deletes", type=int, default=100, help="At each count.")


class StatDeleteList(ScriptUser):
    """Stages `keys-1000` and so on. Each process has a bucket's share of its own."""

    def script(self) -> None:
        options = self.session.options
        number, processes = self.session.share
        size, there = parse_size(options.size), 0
        prefix = f"keys-{number}/"
        for count in (int(one) // processes for one in options.counts.split(",")):
            names = [f"{prefix}{key:09d}" for key in range(there, count)]
            problem = next(filter(None, run_many(self.session.connect, "put", names, FILLERS, size)), "")
            if problem:
                self.session.give_up(f"the bucket cannot be filled: {problem}")
                return
            there = max(there, count)
            self._measure(prefix, there, f"keys-{there * processes}", size)

    def _measure(self, prefix: str, there: int, stage: str, size: int) -> None:
        options = self.session.options
        users = self.session.share[1]
        for _ in range(options.stats):
            self.do("STAT", f"{prefix}{random.randrange(there):09d}", stage=stage, users=users)
        for _ in range(options.lists):
            after = f"{prefix}{random.randrange(max(1, there - PAGE)):09d}"
            self.do("LIST", prefix, PAGE, stage=stage, users=users, after=after)
        gone = random.sample(range(there), min(there, options.deletes))
        for key in gone:
            self.do("DELETE", f"{prefix}{key:09d}", stage=stage, users=users)
        for key in gone:
            self.objects.put(f"{prefix}{key:09d}", size)
