"""Live requests: each watcher gets what its filter wants, in bounded batches, and the workers stop with the last."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sluice_s3.app.admin.operations import request_watch
from sluice_s3.app.admin.operations.request_watch import MAX_WAITING, PER_BATCH, RequestFilter, RequestWatch, Watcher
from tests.support.settings import ROOT
from tests.unit.admin.console_client import Console
from tests.unit.admin.test_admin import SilentTail


def asked(**fields: Any) -> dict[str, Any]:
    return {
        "time": "2026-01-01T00:00:00.000Z", "request": "R", "client": "192.0.2.1", "access_key": ROOT.access,
        "principal": "arn:aws:iam::1:user/ann", "method": "GET", "operation": "GetObject", "bucket": "box",
        "key": "a/b", "status": 200, "error": "", "bytes_in": 0, "bytes_out": 1, "ms": 2.0, "phases": {}, **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "is_wanted"),
    [
        ({}, True),
        ({"bucket": "box"}, True),
        ({"bucket": "bo"}, False),
        ({"prefix": "a/"}, True),
        ({"prefix": "b"}, False),
        ({"principal": "user/ann"}, True),
        ({"principal": ROOT.access.lower()}, True),
        ({"principal": "bob"}, False),
        ({"operation": "GetObject"}, True),
        ({"operation": "PutObject"}, False),
        ({"status": "2xx"}, True),
        ({"status": "200"}, True),
        ({"status": "404"}, False),
        ({"status": "error"}, False),
        ({"slower_than_ms": 2}, True),
        ({"slower_than_ms": 2.5}, False),
        ({"request": "R"}, True),
        ({"request": "S"}, False),
    ],
)
def test_filters(wanted: dict[str, Any], is_wanted: bool) -> None:
    assert RequestFilter(**wanted).matches(asked()) is is_wanted
    assert RequestFilter(status="error").matches(asked(status=503, bucket=None, key=None, access_key=None))


async def test_what_waits_for_a_watcher_is_bounded_and_counted() -> None:
    watcher = Watcher(RequestFilter())
    watcher.give([asked(request=str(number)) for number in range(MAX_WAITING + 7)], 3)
    batches = watcher.batches()
    first, missed = await anext(batches)
    assert (len(first), first[0]["request"], missed) == (PER_BATCH, "7", 10)
    second, missed = await anext(batches)
    assert (second[0]["request"], missed) == (str(PER_BATCH + 7), 0)


@pytest.mark.slow
async def test_a_watch_names_callers_and_ends_with_its_last_watcher(
    site: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_watch, "READ_SECONDS", 0.01)
    tail = SilentTail()
    watch = RequestWatch(site.index, lambda: tail)
    one, other = watch.watch(RequestFilter()), watch.watch(RequestFilter(status="error"))
    assert tail.wanted
    tail.requests, tail.lost = [asked(), asked(access_key=None), asked(access_key="unknown", status=500)], 4
    async with asyncio.timeout(5):
        found, missed = await anext(one.batches())
        (failed,), also_missed = await anext(other.batches())
    assert [request["principal"].rpartition(":")[2] for request in found] == ["root", "", ""]
    assert (failed["status"], missed, also_missed) == (500, 4, 4)
    watch.leave(one)
    assert tail.wanted
    watch.leave(other)
    assert not tail.wanted


@pytest.mark.slow
async def test_who_may_watch(site: Console) -> None:
    ann = await site.sign_in(*await site.user("ann"))
    assert (await ann.get("/api/v1/live/requests")).status_code == 403
    root = await site.sign_in()
    for wrong in ({"status": "6xx"}, {"slower_than_ms": "-1"}, {"slower_than_ms": "nan"}, {"bucket": "x" * 300}):
        assert (await root.get("/api/v1/live/requests", params=wrong)).status_code == 422, wrong
