"""Buckets that are made with tags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.raw_http import Answer
from tests.support.settings import make_settings
from tests.support.signing import Key
from tests.unit.s3.plane import ROOT, Plane, plane
from tests.unit.store.site import prepare

pytestmark = pytest.mark.slow


@pytest.fixture
async def s3(tmp_path: Path) -> AsyncIterator[Plane]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with plane(settings) as made:
        yield made


def tag(key: str, value: str = "v") -> str:
    return f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>"


async def create(s3: Plane, name: str, *parts: str, key: Key = ROOT, **fields: str) -> Answer:
    body = f"<CreateBucketConfiguration>{''.join(parts)}</CreateBucketConfiguration>".encode()
    return await s3.ask("PUT", f"/{name}", body=body, key=key, **fields)


async def tags_of(s3: Plane, name: str) -> str:
    answer = await s3.ask("GET", f"/{name}", "tagging")
    return answer.body.decode().partition("<TagSet>")[2].partition("</TagSet>")[0] or answer.code


async def test_a_bucket_has_its_tags_from_the_beginning(s3: Plane) -> None:
    given = tag("team", "ä +b") + tag("a", "")
    assert (await create(s3, "tagged", f"<Tags>{given}</Tags>")).status == 200
    assert await tags_of(s3, "tagged") == tag("a", "") + tag("team", "ä +b")
    for name, parts in {"none": (), "empty": ("<Tags/>",)}.items():
        assert (await create(s3, name, *parts)).status == 200
        assert await tags_of(s3, name) == "NoSuchTagSet"
    lock = {"x_amz_bucket_object_lock_enabled": "true"}
    place = "<LocationConstraint>us-east-1</LocationConstraint>"
    assert (await create(s3, "locked", place, f"<Tags>{tag('a')}</Tags>", **lock)).status == 200
    assert await tags_of(s3, "locked") == tag("a")
    assert (await s3.ask("GET", "/locked", "object-lock")).status == 200
    assert (await s3.ask("GET", "/locked", "publicAccessBlock")).status == 200
    fifty = "".join(tag(f"k{number:02}") for number in range(50))
    assert (await create(s3, "fifty", f"<Tags>{fifty}</Tags>")).status == 200
    assert await tags_of(s3, "fifty") == fifty


REFUSED = {
    f"<Tags>{tag('a')}{tag('a')}</Tags>": "InvalidTag",
    f"<Tags>{tag('aws:a')}</Tags>": "InvalidTag",
    f"<Tags>{tag('')}</Tags>": "InvalidTag",
    f"<Tags>{tag('k' * 129)}</Tags>": "InvalidTag",
    f"<Tags>{tag('k', 'v' * 257)}</Tags>": "InvalidTag",
    f"<Tags>{''.join(tag(str(number)) for number in range(51))}</Tags>": "BadRequest",
    "<Tags><Tag><Key>a</Key></Tag></Tags>": "MalformedXML",
    "<Tags><Other/></Tags>": "MalformedXML",
    f"<Tags>{tag('a')}</Tags><Tags>{tag('b')}</Tags>": "MalformedXML",
}


async def test_tags_are_checked_as_those_of_put_bucket_tagging(s3: Plane) -> None:
    for content, code in REFUSED.items():
        answer = await create(s3, "refused", content)
        assert (content, answer.status, answer.code) == (content, 400, code)
    assert (await s3.ask("HEAD", "/refused")).status == 404


async def test_a_bucket_that_is_there_is_not_given_tags(s3: Plane) -> None:
    assert (await create(s3, "mine")).status == 200
    assert (await create(s3, "mine")).status == 200
    assert (await create(s3, "mine", f"<Tags>{tag('a')}</Tags>")).code == "BucketAlreadyOwnedByYou"
    assert await tags_of(s3, "mine") == "NoSuchTagSet"


async def user_with(s3: Plane, name: str, *statements: dict[str, Any]) -> Key:
    said = [{"Effect": "Allow", "Resource": "*", **one} for one in statements]
    owner = (await s3.bucket("ours")).owner_id
    return await s3.user(owner, name, {"Version": "2012-10-17", "Statement": said})


async def test_tags_need_a_right_of_their_own(s3: Plane) -> None:
    assert (await create(s3, "ours")).status == 200
    creator = await user_with(s3, "creator", {"Action": ["s3:CreateBucket", "s3:PutBucketTagging"]})
    assert (await create(s3, "untagged", key=creator)).status == 200
    answer = await create(s3, "denied", f"<Tags>{tag('a')}</Tags>", key=creator)
    assert (answer.status, answer.code) == (403, "AccessDenied")
    assert (await s3.ask("HEAD", "/denied")).status == 404
    actions = {"Action": ["s3:CreateBucket", "s3:TagResource"], "Resource": "arn:aws:s3:::team-*"}
    tagger = await user_with(s3, "tagger", actions)
    assert (await create(s3, "team-a", f"<Tags>{tag('a')}</Tags>", key=tagger)).status == 200
    assert (await create(s3, "other-a", f"<Tags>{tag('a')}</Tags>", key=tagger)).status == 403


async def test_policies_see_the_tags_of_a_new_bucket(s3: Plane) -> None:
    assert (await create(s3, "ours")).status == 200
    rules = {
        "only-team": ({"StringEquals": {"aws:RequestTag/team": "a"}}, [403, 200, 403, 403]),
        "only-keys": ({"ForAllValues:StringEquals": {"aws:TagKeys": ["team"]}}, [200, 200, 200, 403]),
        "some-tag": ({"Null": {"aws:TagKeys": "false"}}, [403, 200, 200, 200]),
        "no-objects": ({"Null": {"s3:RequestObjectTag/team": "true"}}, [200, 200, 200, 200]),
    }
    for name, (condition, expected) in rules.items():
        action = {"Action": ["s3:CreateBucket", "s3:TagResource"], "Condition": condition}
        user = await user_with(s3, name, action)
        given = ("", tag("team", "a"), tag("team", "b"), tag("team", "b") + tag("x"))
        found = [
            (await create(s3, f"{name}-{number}", f"<Tags>{tags}</Tags>", key=user)).status
            for number, tags in enumerate(given)
        ]
        assert (name, found) == (name, expected)
    deny = {
        "Effect": "Deny",
        "Action": "s3:CreateBucket",
        "Condition": {"StringEquals": {"aws:RequestTag/env": "prod"}},
    }
    user = await user_with(s3, "denied", {"Action": "s3:*"}, deny)
    assert (await create(s3, "denied-1", f"<Tags>{tag('env', 'prod')}</Tags>", key=user)).status == 403
    assert (await create(s3, "denied-2", f"<Tags>{tag('env', 'test')}</Tags>", key=user)).status == 200
