"""DeleteObjects under policies that take long to decide: bounded for the request, and never long at a stretch."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from sluice_s3.app.access.policy import ALLOWED
from sluice_s3.app.s3.auth import authorization
from tests.support.raw_http import Answer
from tests.support.settings import make_settings
from tests.unit.s3.plane import Plane, plane
from tests.unit.store.site import prepare

COSTLY = [f"arn:aws:s3:::costly/*{'a?' * 400}b{number:02}" for number in range(22)]
POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Deny", "Principal": "*", "Action": "s3:DeleteObject", "Resource": COSTLY}],
}
KEYS = 100


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as found:
        assert (await found.ask("PUT", "/costly")).status == 200
        assert (await found.ask("PUT", "/costly", "policy", orjson.dumps(POLICY))).status == 204
        yield found


async def delete(s3: Plane) -> Answer:
    keys = "".join(f"<Object><Key>{'a' * 990}{number:04}</Key></Object>" for number in range(KEYS))
    body = f"<Delete>{keys}</Delete>".encode()
    digest = base64.b64encode(hashlib.md5(body).digest()).decode()
    return await s3.ask("POST", "/costly", "delete", body, content_md5=digest)


async def test_others_have_their_turns(s3: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "STRETCH_SECONDS", 0)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    answer = await delete(s3)
    counting.cancel()
    assert (answer.status, answer.body.count(b"<Deleted>")) == (200, KEYS)
    assert turns >= KEYS


async def test_past_the_bound_of_work_the_rest_is_denied(s3: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "BATCH_ALLOWED", ALLOWED)
    answer = await delete(s3)
    assert answer.status == 200
    outcomes = re.findall(rb"<(Deleted|Error)>", answer.body)
    done = outcomes.count(b"Deleted")
    assert 0 < done < KEYS
    assert outcomes == [b"Deleted"] * done + [b"Error"] * (KEYS - done)
    assert answer.body.count(b"<Code>AccessDenied</Code>") == KEYS - done


async def test_many_keys_may_cost_more_than_one(s3: Plane) -> None:
    answer = await delete(s3)
    assert answer.body.count(b"<Deleted>") == KEYS
