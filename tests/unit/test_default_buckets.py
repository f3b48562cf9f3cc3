"""The buckets of the settings: how their list is read, and what each allows without a key."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.access.bucket_access import BLOCK, POLICY, access_of
from sluice_s3.app.default_buckets import BucketRefused, canned_policy, parse_buckets
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import prepare
from tests.support.settings import make_settings
from tests.unit.store.site import opened


def test_a_list() -> None:
    assert parse_buckets("") == []
    assert parse_buckets(" one, two:public,,one,two, three:none") == [
        ("one", None),
        ("two", "public"),
        ("three", "none"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Not_Fine", "'Not_Fine' in SLUICE_DEFAULT_BUCKETS is no bucket name"),
        ("one:private", "after the colon comes one of none, download, upload, public"),
        ("one:", "after the colon"),
        ("one:public,one:none", "'one' in SLUICE_DEFAULT_BUCKETS has both public and none"),
    ],
)
def test_lists_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(BucketRefused, match=reason):
        parse_buckets(text)


def test_public_is_download_and_upload() -> None:
    assert canned_policy("one", "none") is None
    # the statements that MinIO's clients know as `public`
    assert canned_policy("one", "public") == (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["*"]},"Action":["s3:GetBucketLocation",'
        '"s3:ListBucket","s3:ListBucketMultipartUploads"],"Resource":["arn:aws:s3:::one"]},{"Effect":"Allow","Principal":'
        '{"AWS":["*"]},"Action":["s3:GetObject","s3:AbortMultipartUpload","s3:DeleteObject","s3:ListMultipartUploadParts",'
        '"s3:PutObject"],"Resource":["arn:aws:s3:::one/*"]}]}'
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Those of a store that was started twice with these buckets."""
    made = make_settings(tmp_path, default_buckets="one:public,two:download,three,four:public")
    prepare(made)
    prepare(made)
    prepare(made.model_copy(update={"default_buckets": "four:none,three"}))
    return made


async def test_access_is_set_at_every_start(settings: Settings) -> None:
    async with opened(settings) as store:
        owner = (await store.index.accounts())[0][0].id
        found = {bucket.name: access_of(bucket) for bucket in await store.index.buckets(owner, "", "", 10)}
        assert {name: access.public for name, access in found.items()} == {
            "one": True,
            "two": True,
            "three": False,
            "four": False,
        }
        assert not any(found["one"].block)
        assert all(found["four"].block)
        assert found["four"].policy is None


async def test_nothing_is_written_where_nothing_differs(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from sluice_s3.app.default_buckets import make_buckets
    from sluice_s3.app.index import Index

    changed: list[tuple[str, object]] = []

    async def note(_: Index, _id: int, name: str, value: object) -> None:
        changed.append((name, value))

    async with opened(settings) as store:
        monkeypatch.setattr(type(store.index), "configure_bucket", note)
        owner = (await store.index.accounts())[0][0].id
        await make_buckets(store, settings, parse_buckets("one:public,two:download,three,four:none"), owner)
        assert changed == []
        await make_buckets(store, settings, parse_buckets("one:none,three:upload"), owner)
        assert changed == [(POLICY, None), (BLOCK, None), (BLOCK, []), (POLICY, canned_policy("three", "upload"))]
        changed.clear()
        open_by_default = settings.model_copy(update={"default_public_access_block": False})
        await make_buckets(store, open_by_default, parse_buckets("one:none"), owner)
        assert changed == [(POLICY, None)]  # the block is off already
