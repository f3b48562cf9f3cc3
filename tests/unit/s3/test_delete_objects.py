"""DeleteObjects of keys that no object can have."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from tests.support.raw_http import Answer
from tests.support.settings import make_settings
from tests.support.signing import Key
from tests.unit.s3.plane import ROOT, Plane, plane
from tests.unit.store.site import prepare

TAGS = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
UNUSABLE = {"../x": b"InvalidURI", "a/../../b": b"InvalidURI", "k" * 1025: b"KeyTooLongError"}


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    """Bucket `bkt` with a setting, so that rights are asked for each key, and the object `good`."""
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        for path, query, body in (("/bkt", "", b""), ("/bkt", "tagging", TAGS), ("/bkt/good", "", b"x")):
            assert (await made.ask("PUT", path, query, body)).status in (200, 204)
        yield made


async def delete(s3: Plane, *keys: str, key: Key = ROOT) -> Answer:
    entries = "".join(f"<Object><Key>{escape(name)}</Key></Object>" for name in keys)
    body = f"<Delete>{entries}</Delete>".encode()
    md5 = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
    return await s3.ask("POST", "/bkt", "delete", body, key, content_md5=md5)


@pytest.mark.parametrize("keys", [["../x"], list(UNUSABLE)])
async def test_only_unusable_keys(s3: Plane, keys: list[str], caplog: pytest.LogCaptureFixture) -> None:
    answer = await delete(s3, *keys)
    assert (answer.status, answer.body.count(b"<Deleted>")) == (200, 0)
    for name in keys:
        assert b"<Error><Key>%b</Key><Code>%b</Code>" % (name.encode(), UNUSABLE[name]) in answer.body
    assert not caplog.records


async def test_unusable_keys_beside_others(s3: Plane) -> None:
    nobody = await s3.user((await s3.bucket("bkt")).owner_id, "nobody", {"Version": "2012-10-17", "Statement": []})
    answer = await delete(s3, "../x", "good", key=nobody)
    assert (answer.status, answer.body.count(b"<Error>")) == (200, 2)
    assert b"<Key>good</Key><Code>AccessDenied</Code>" in answer.body
    answer = await delete(s3, "../x", "good")
    assert (answer.status, answer.body.count(b"<Error>"), answer.body.count(b"<Deleted>")) == (200, 1, 1)
