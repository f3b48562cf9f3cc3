"""The sum a month: what is paid in any case, and what grows with the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from sluice_s3.loadtests.report.cost.load import Load
from sluice_s3.loadtests.report.cost.prices import Price

MONTH_SECONDS = 730 * 3600
"""A month as AWS counts it."""


@dataclass(frozen=True)
class Bill:
    """A month of one store: dollars at any load, and dollars for each request a second all month long.

    `rate` are requests a second that the store carried, `moved` bytes of an average one.
    """

    target: str
    fixed: float
    each: float
    rate: float
    moved: float

    def total(self, rate: float) -> float:
        """Return dollars a month at so many requests a second."""
        return self.fixed + self.each * rate

    @property
    def per_dollar(self) -> float:
        """MB/s for a dollar a month, at the load that the store carried; 0 where nothing is paid."""
        total = self.total(self.rate)
        return self.rate * self.moved / 1e6 / total if total else 0.0


@dataclass(frozen=True)
class Crossing:
    """The load at which two stores cost the same: `below` is cheaper under it, `above` over it."""

    below: str
    above: str
    rate: float
    dollars: float


def bill_of(target: str, price: Price, load: Load) -> Bill:
    """Return a store's month."""
    fixed = price.month + price.gb * price.stored
    fixed += price.iops * max(0.0, price.iops_provisioned - price.iops_included)
    fixed += price.mbps * max(0.0, price.mbps_provisioned - price.mbps_included)
    of_operation = {"PUT": price.put, "LIST": price.put, "GET": price.get, "STAT": price.get, "DELETE": price.delete}
    request = sum(share * of_operation.get(name, 0.0) for name, share in load.shares.items()) / 1000
    request += price.read * load.read / 1e9 + price.write * load.written / 1e9
    return Bill(target, fixed, request * MONTH_SECONDS, load.rates.get(target, 0.0), load.moved)


def bills_of(prices: Mapping[str, Price], load: Load) -> list[Bill]:
    """Return the months of the priced stores that carried the load."""
    return [bill_of(target, price, load) for target, price in prices.items() if load.rates.get(target)]


def crossings(bills: list[Bill]) -> list[Crossing]:
    """Return the loads at which two stores cost the same, the lowest first."""
    found = []
    for one, other in combinations(bills, 2):
        steep, flat = (one, other) if one.each > other.each else (other, one)
        if steep.each > flat.each and steep.fixed < flat.fixed:
            rate = (flat.fixed - steep.fixed) / (steep.each - flat.each)
            found.append(Crossing(steep.target, flat.target, rate, steep.total(rate)))
    return sorted(found, key=lambda crossing: crossing.rate)
