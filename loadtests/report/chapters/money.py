"""What the measured load costs a month, and from which load on which store is cheaper."""

from __future__ import annotations

from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.cost.bill import MONTH_SECONDS, Bill, Crossing, bills_of, crossings
from sluice_s3.loadtests.report.cost.examples import SOURCES
from sluice_s3.loadtests.report.cost.load import load_of
from sluice_s3.loadtests.report.cost.prices import Price, names
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Link, Links, Remark, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.lines import Axis, Series, plot
from sluice_s3.loadtests.report.units import decimal, dollars, megabytes, percent, significant

STEPS = 50
"""Points of a line, less one."""
DECADES = 100.0
"""The plot begins at this part of the most that a store carried, if lines do not cross below."""
SHOWN = 2.0
"""The plot reaches so many times the most that a store carried, if lines cross there."""


def found(report: Report) -> list[Chapter]:
    """Return the chapter, if there are prices and a load."""
    prices, load = report.options.prices, load_of(report.model)
    if not prices or load is None:
        return []
    bills = bills_of(prices, load)
    if not bills:
        return [Chapter("money", "Money", "No store with a price carried a load.", [], "open")]
    mix = ", ".join(f"{name} {percent(share)}" for name, share in load.shares.items())
    about = (
        f"The load of {load.scenario} ({mix}; {decimal(load.moved)} a request on average), day and night for a month "
        f"of {MONTH_SECONDS // 3600} hours. The prices are the user's, in US dollars; what is not given costs nothing."
    )
    blocks: list[Block] = [months(bills, prices), plots(report.model, bills)]
    blocks += [Remark(sentence(one, bills)) for one in crossings(bills)] or [Remark(cheapest(bills))]
    blocks += [used(prices), *sources(prices)]
    return [Chapter("money", "Money: what the load costs a month", about, blocks, "open")]


def months(bills: list[Bill], prices: dict[str, Price]) -> Table:
    """Render each store's month, at its own pace and at the slowest one's."""
    slowest = min(one.rate for one in bills)
    rows: list[list[str | Cell]] = []
    for one in bills:
        throughput = megabytes(one.rate * one.moved) if one.moved else ""
        row: list[str | Cell] = [one.target, f"{prices[one.target].stored:,.0f} GB", significant(one.rate), throughput]
        row += [dollars(one.fixed), dollars(one.each * one.rate), dollars(one.total(one.rate))]
        rows.append([*row, significant(one.per_dollar) if one.per_dollar else "", dollars(one.total(slowest))])
    head = ["Store", "stored", "requests/s carried", "MB/s", "at rest", "for the load", "$ a month", "MB/s for $1"]
    note = "At rest: stored data, provisioned IOPS and MB/s, fixed sums. For the load: requests and bytes."
    return Table([*head, f"$ at {significant(slowest)}/s"], rows, "The measured load", note)


def plots(model: Model, bills: list[Bill]) -> Figures:
    """Plot dollars a month over the load. A ring: the most that the store carried."""
    most = max(one.rate for one in bills)
    crossed = [one.rate for one in crossings(bills) if one.rate <= SHOWN * most]
    low, high = min([most / DECADES, *(rate / 3 for rate in crossed)]), max([most, *(rate * 1.3 for rate in crossed)])
    series = []
    for one in bills:
        index = model.targets.index(one.target)
        series.append(Series(one.target, index, _line(one, low, one.rate), rings=[(one.rate, one.total(one.rate))]))
        if high > one.rate:
            series.append(Series(f"{one.target}, more than it carried", index, _line(one, one.rate, high), faint=True))
    across = Axis("load (requests/s, all month long)", log=True)
    title = "Cost as the load grows"
    note = "A ring is the most that the store carried in this run; faint lines go beyond. Logarithmic scales."
    figure = Figure(plot(title, series, across, Axis("US dollars a month", log=True, format=dollars)), title)
    return Figures([figure], "", note, model.targets)


def _line(bill: Bill, low: float, high: float) -> list[tuple[float, float]]:
    """Return points of a straight line that is bent by logarithmic scales."""
    rates = [low * (high / low) ** (step / STEPS) for step in range(STEPS + 1)]
    return [(rate, bill.total(rate)) for rate in rates if bill.total(rate) > 0]


def sentence(crossing: Crossing, bills: list[Bill]) -> str:
    """Return where two lines cross, and whether the stores carry so much."""
    words = (
        f"{crossing.below} is cheaper than {crossing.above} below {significant(crossing.rate)} requests/s, "
        f"{crossing.above} above it (both {dollars(crossing.dollars)} a month there)"
    )
    short = [one.target for one in bills if one.target in (crossing.below, crossing.above) and one.rate < crossing.rate]
    return f"{words}; {' and '.join(short)} did not carry so much here." if short else f"{words}."


def cheapest(bills: list[Bill]) -> str:
    """Return who is cheaper at every load."""
    if len(bills) == 1:
        return f"Only {bills[0].target} has a price."
    best = min(bills, key=lambda one: (one.fixed, one.each))
    return f"The lines do not cross: {best.target} costs least at every load."


def used(prices: dict[str, Price]) -> Table:
    """Render the prices as they were used."""
    keys = [key for key in names() if any(getattr(one, key.replace("-", "_")) for one in prices.values())]
    rows: list[list[str | Cell]] = [
        [Cell(key, title=str(Price.model_fields[key.replace("-", "_")].description)),
         *(f"{getattr(one, key.replace('-', '_')):,g}" for one in prices.values())]
        for key in keys
    ]  # fmt: skip
    rows.append(["example", *(one.example or "none" for one in prices.values())])
    about = "; ".join(f"{key}: {Price.model_fields[key.replace('-', '_')].description}" for key in keys)
    return Table(["Price", *prices], rows, "Prices", f"{about}.")


def sources(prices: dict[str, Price]) -> list[Block]:
    """Render where the prices of shipped examples are from."""
    examples = dict.fromkeys(one.example for one in prices.values() if one.example)
    links = [Link(one.words, one.link) for name in examples for one in SOURCES[name]]
    note = "Examples of a day, not today's prices: check them on the provider's page."
    return [Links(links, "Sources of the examples"), Remark(note)] if links else []
