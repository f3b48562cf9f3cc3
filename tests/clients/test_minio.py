"""minio-py with its defaults: what a program written for MinIO does."""

from __future__ import annotations

import io
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from minio import Minio
from minio.commonconfig import ENABLED, ComposeSource, CopySource, Tags
from minio.deleteobjects import DeleteObject
from minio.error import S3Error
from minio.versioningconfig import VersioningConfig

from tests.clients.files import DOUBLE_SLASH, MIB, NAMES, SIZES, digest
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway

pytestmark = pytest.mark.clients


@pytest.fixture
def client(gateway: Gateway) -> Minio:
    return Minio(gateway.endpoint.removeprefix("http://"), ACCESS_KEY, SECRET_KEY, secure=False)


@pytest.fixture
def bucket(client: Minio, bucket: str) -> str:
    """A new bucket, made by the client."""
    client.make_bucket(f"{bucket}-minio")
    return f"{bucket}-minio"


@pytest.mark.parametrize("name", SIZES)
def test_file_of_each_size_comes_back(client: Minio, bucket: str, tree: Path, tmp_path: Path, name: str) -> None:
    client.fput_object(bucket, name, str(tree / "sizes" / name), part_size=5 * MIB, metadata={"colour": "blue"})
    client.fget_object(bucket, name, str(tmp_path / "back"))
    assert digest(tmp_path / "back") == digest(tree / "sizes" / name)
    found = client.stat_object(bucket, name)
    assert found.size == SIZES[name]
    assert found.metadata is not None
    assert found.metadata["x-amz-meta-colour"] == "blue"


def test_stream_of_unknown_length_ranges_and_composition(client: Minio, bucket: str, tree: Path) -> None:
    body = (tree / "sizes" / "largest").read_bytes()
    client.put_object(bucket, "source +%", io.BytesIO(body), -1, part_size=5 * MIB)
    assert client.get_object(bucket, "source +%", offset=5 * MIB - 3, length=10).data == body[5 * MIB - 3 : 5 * MIB + 7]
    client.copy_object(bucket, "copy", CopySource(bucket, "source +%"))
    pieces = [ComposeSource(bucket, "copy"), ComposeSource(bucket, "source +%", offset=1, length=6 * MIB)]
    client.compose_object(bucket, "whole", pieces)
    assert client.get_object(bucket, "whole").data == body + body[1 : 6 * MIB + 1]


def test_names_versions_tags_and_deletes(client: Minio, bucket: str) -> None:
    client.set_bucket_versioning(bucket, VersioningConfig(ENABLED))
    tags = Tags.new_object_tags()
    tags["a b"] = "c/d"
    names = {*NAMES, *DOUBLE_SLASH}
    for name in names:
        for body in (b"old", name.encode()):
            client.put_object(bucket, name, io.BytesIO(body), len(body), tags=tags)
        assert client.get_object(bucket, name).data == name.encode()
        assert client.get_object_tags(bucket, name) == tags
    for old in (False, True):
        assert {one.object_name for one in client.list_objects(bucket, recursive=True, use_api_v1=old)} == names
    versions = list(client.list_objects(bucket, recursive=True, include_version=True))
    assert len(versions) == 2 * len(names)
    doomed = [DeleteObject(one.object_name or "", one.version_id) for one in versions]
    assert list(client.remove_objects(bucket, doomed)) == []
    client.remove_bucket(bucket)
    with pytest.raises(S3Error) as error:
        client.get_object(bucket, "k")
    assert error.value.code == "NoSuchBucket"


def test_signed_urls(client: Minio, bucket: str) -> None:
    put: Any = urllib.request.Request(client.presigned_put_object(bucket, "a +%"), data=b"body", method="PUT")
    urllib.request.urlopen(put).close()
    url = client.presigned_get_object(bucket, "a +%", response_headers={"response-content-type": "x/y"})
    with urllib.request.urlopen(url) as answer:
        assert (answer.read(), answer.headers["content-type"]) == (b"body", "x/y")
