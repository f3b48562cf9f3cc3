"""A page of a listing costs the same in a bucket of any size, and with a delimiter as much as it shows."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest

from sluice_s3.app.index.objects.rows import Page
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.loadtests.common.procfs import cpu_seconds
from tests.integration.limits.counted import Cost, counting, fill
from tests.integration.limits.wire import Wire
from tests.support.environment import sized
from tests.support.gateway import Gateway

pytestmark = pytest.mark.xdist_group("limits")

FEW, MANY = 1000, sized(ci=20_000, soak=1_000_000)
PAGE = 1000
FOLDERS = 10
AROUND = 3
"""Statements beside one for each common prefix: begin, the look behind the last, end."""
SEEK = 50
"""Steps of the virtual machine for one seek and one row, at most."""
STRIDE = 37
"""Pages between two that are asked for, so that none follows the one before."""
HTTP_PAGES = sized(ci=20, soak=200)


def key(number: int, count: int) -> str:
    """In ten folders of the same size, numbered through in order of key."""
    return f"folder-{number * FOLDERS // count}/{number:08d}"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Has a bucket of few and a bucket of many keys, put behind its back into its index."""
    with Gateway(tmp_path_factory.mktemp("listing") / "data", workers=1) as made:
        with Wire(made.endpoint) as wire:
            assert wire.ask_signed("PUT", "/few").status == wire.ask_signed("PUT", "/many").status == 200
        asyncio.run(fill_both(made))
        yield made


def index_of(gateway: Gateway) -> SqliteIndex:
    """The gateway's index, opened as a command beside it would."""
    directory = gateway.data / "index"
    return SqliteIndex(directory / "sluice.db", directory / "run", durability="relaxed", writer=False)


async def fill_both(gateway: Gateway) -> None:
    index = index_of(gateway)
    await index.start()
    for name, count in (("few", FEW), ("many", MANY)):
        bucket = await index.bucket(name)
        assert bucket is not None
        started = time.monotonic()
        await fill(index, bucket, [key(number, count) for number in range(count)])
        print(f"\n{count:,} keys put in {time.monotonic() - started:.1f} s")
    await index.close()


@dataclass
class Site:
    """The index, and ids of the two buckets."""

    index: SqliteIndex
    few: int
    many: int

    async def page(self, bucket: int, prefix: str = "", delimiter: str = "", after: str = "") -> tuple[Page, Cost]:
        """A page and what it cost."""
        with counting(self.index) as cost:
            page = await self.index.list_current(bucket, prefix, delimiter, after, PAGE)
        return page, cost


@pytest.fixture
async def site(gateway: Gateway) -> AsyncIterator[Site]:
    index = index_of(gateway)
    await index.start()
    few, many = await index.bucket("few"), await index.bucket("many")
    assert few is not None
    assert many is not None
    yield Site(index, few.id, many.id)
    await index.close()


async def test_a_page(site: Site) -> None:
    few, small = await site.page(site.few)
    assert len(few.entries) == PAGE
    print(f"page of {PAGE} in {FEW:,} keys: {small}")
    for place in (0, MANY // 3, MANY - PAGE - 1):
        page, cost = await site.page(site.many, after=key(place, MANY))
        print(f"page of {PAGE} in {MANY:,} keys, behind {place:,}: {cost}")
        assert [entry.key for entry in page.entries] == [key(place + number, MANY) for number in range(1, PAGE + 1)]
        assert cost.statements == small.statements
        assert cost.steps <= 2 * small.steps
    page, cost = await site.page(site.many, prefix="folder-7/")
    assert (len(page.entries), page.truncated) == (PAGE, MANY > FOLDERS * PAGE)
    assert cost.steps <= 2 * small.steps


async def test_common_prefixes(site: Site) -> None:
    folders = [f"folder-{number}/" for number in range(FOLDERS)]
    few, small = await site.page(site.few, delimiter="/")
    many, large = await site.page(site.many, delimiter="/")
    print(f"{FOLDERS} common prefixes over {FEW:,} keys: {small}; over {MANY:,}: {large}")
    assert few.prefixes == many.prefixes == folders
    assert large.statements == small.statements <= FOLDERS + AROUND
    assert large.steps <= 2 * small.steps <= 2 * SEEK * (FOLDERS + 1)
    # many common prefixes with keys between them
    page, cost = await site.page(site.many, prefix="folder-3/", delimiter="5")
    print(f"{len(page.prefixes)} common prefixes and {len(page.entries)} keys under one folder: {cost}")
    shown = len(page.prefixes) + len(page.entries)
    assert cost.statements <= shown + AROUND
    assert cost.steps <= SEEK * (shown + 1)


def test_through_the_gateway(gateway: Gateway) -> None:
    """All of a bucket comes, in order. What pages cost the worker is printed, because time is no test."""
    (pid,) = gateway.children()
    with Wire(gateway.endpoint) as wire:
        keys = walk(wire, "many", MANY // PAGE)
        assert keys == [key(number, MANY).encode() for number in range(MANY)]
        spent = {"few": 0.0, "many": 0.0}
        for turn in range(HTTP_PAGES):
            for bucket, count in (("few", FEW), ("many", MANY)):
                start = key(turn * STRIDE % (count // PAGE) * PAGE, count)
                before = cpu_seconds(pid)
                one_page(wire, bucket, f"&prefix=&start-after={quote(start, safe='')}")
                spent[bucket] += cpu_seconds(pid) - before
    few, many = (seconds / HTTP_PAGES * 1e3 for seconds in spent.values())
    print(f"\na page over HTTP: {few:.2f} ms of the worker's CPU in {FEW:,} keys, {many:.2f} in {MANY:,}")


def walk(wire: Wire, bucket: str, pages: int) -> list[bytes]:
    """The keys of the first so many pages."""
    keys: list[bytes] = []
    query = ""
    for _ in range(pages):
        page = one_page(wire, bucket, query)
        keys += page
        query = f"&prefix=&start-after={quote(page[-1], safe='')}"
    return keys


def one_page(wire: Wire, bucket: str, query: str) -> list[bytes]:
    answer = wire.ask_signed("GET", f"/{bucket}", f"list-type=2&max-keys={PAGE}{query}")
    assert answer.status == 200
    return re.findall(rb"<Key>([^<]*)</Key>", answer.body)
