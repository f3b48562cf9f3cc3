"""Stores whose ETags are made of CRC64NVME beside one whose ETags are MD5s."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from awscrt.checksums import crc64nvme
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

MASTER = base64.b64encode(bytes(range(32))).decode()
TOML = """\
[stores.usual]
path = "{root}/usual"

[stores.quick]
path = "{root}/quick"
etag = "crc64nvme"

[stores.plain]
path = "{root}/plain"
layout = "tree"
etag = "crc64nvme"
"""
SMALL, LARGE = b"small " * 100, os.urandom(300_000)
PART = os.urandom(5 << 20)
STORES = ["quick", "plain"]


def quoted(body: bytes) -> str:
    """The ETag of a body in a store of CRC64NVME."""
    return f'"{crc64nvme(body):016x}{len(body):010x}-crc64nvme"'


def quoted_md5(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'


def configured(directory: Path) -> Gateway:
    config = directory / "sluice.toml"
    config.write_text(TOML.format(root=directory))
    env = {
        "SLUICE_CONFIG": str(config),
        "SLUICE_MASTER_KEY": MASTER,
        "SLUICE_TREE_SCAN_INTERVAL": "1",
        "SLUICE_DISCARD_GRACE": "0",
        "SLUICE_STORAGE_CLASSES": "STANDARD_IA=quick",
    }
    return Gateway(directory / "gateway", env=env, given=())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with configured(tmp_path_factory.mktemp("crc64")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


def make(s3: Any, store: str) -> str:
    """A new bucket on that store."""
    name = f"{store}-{os.urandom(4).hex()}"
    s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": f"us-east-1:{store}"})
    return name


def upload(s3: Any, bucket: str, key: str, *bodies: bytes, md5: bool = False, **fields: str) -> tuple[list[str], Any]:
    """ETags of the parts, and the answer of Complete, which is asked twice."""
    address = {"Bucket": bucket, "Key": key}
    address["UploadId"] = s3.create_multipart_upload(**address, **fields)["UploadId"]
    parts = []
    for number, body in enumerate(bodies, 1):
        given = {"ContentMD5": base64.b64encode(hashlib.md5(body).digest()).decode()} if md5 else fields
        etag = s3.upload_part(**address, PartNumber=number, Body=body, **given)["ETag"]
        parts.append({"PartNumber": number, "ETag": etag})
    assert [part["ETag"] for part in s3.list_parts(**address)["Parts"]] == [part["ETag"] for part in parts]
    done = s3.complete_multipart_upload(**address, MultipartUpload={"Parts": parts})
    assert s3.complete_multipart_upload(**address, MultipartUpload={"Parts": parts})["ETag"] == done["ETag"]
    wrong = [{**part, "ETag": quoted(b"another")} for part in parts]
    with pytest.raises(ClientError) as caught:
        s3.complete_multipart_upload(**address, MultipartUpload={"Parts": wrong})
    assert code_of(caught) == (400, "InvalidPart")
    return [part["ETag"] for part in parts], done


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("body", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
def test_every_answer_has_it(s3: Any, store: str, body: bytes) -> None:
    bucket, etag = make(s3, store), quoted(body)
    for fields in ({}, {"ChecksumAlgorithm": "CRC64NVME"}, {"ChecksumAlgorithm": "SHA256"}):
        assert s3.put_object(Bucket=bucket, Key="k", Body=body, **fields)["ETag"] == etag
    for ask in (s3.get_object, s3.head_object):
        assert ask(Bucket=bucket, Key="k")["ETag"] == etag
    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["ETag"] == etag
    assert s3.list_object_versions(Bucket=bucket)["Versions"][0]["ETag"] == etag
    attributes = s3.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ETag"])
    assert attributes["ETag"] == etag.strip('"')
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == body


def test_content_md5_is_checked_and_is_the_etag(s3: Any) -> None:
    bucket = make(s3, "quick")
    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket, Key="k", Body=SMALL, ContentMD5=base64.b64encode(bytes(16)).decode())
    assert code_of(caught) == (400, "BadDigest")
    md5 = base64.b64encode(hashlib.md5(SMALL).digest()).decode()
    assert s3.put_object(Bucket=bucket, Key="k", Body=SMALL, ContentMD5=md5)["ETag"] == quoted_md5(SMALL)


def test_forms(s3: Any) -> None:
    form = s3.generate_presigned_post(make(s3, "quick"), "k")
    answer = httpx.post(form["url"], data=form["fields"], files={"file": SMALL})
    assert (answer.status_code, answer.headers["etag"]) == (204, quoted(SMALL))


def test_the_store_of_a_storage_class_decides(s3: Any) -> None:
    bucket, ia = make(s3, "usual"), {"StorageClass": "STANDARD_IA"}
    assert s3.put_object(Bucket=bucket, Key="k", Body=LARGE)["ETag"] == quoted_md5(LARGE)
    assert s3.put_object(Bucket=bucket, Key="ia", Body=LARGE, **ia)["ETag"] == quoted(LARGE)
    for key, fields, expected in (("k", ia, quoted(LARGE)), ("ia", {}, quoted_md5(LARGE))):
        copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/{key}", **fields)
        assert copied["CopyObjectResult"]["ETag"] == expected
    address = {"Bucket": bucket, "Key": "parts"}
    address["UploadId"] = s3.create_multipart_upload(**address, **ia)["UploadId"]
    assert s3.upload_part(**address, PartNumber=1, Body=LARGE)["ETag"] == quoted(LARGE)


def test_conditions(s3: Any) -> None:
    bucket = make(s3, "quick")
    etag = s3.put_object(Bucket=bucket, Key="k", Body=SMALL)["ETag"]
    assert s3.get_object(Bucket=bucket, Key="k", IfMatch=etag)["ETag"] == etag
    with pytest.raises(ClientError, match="304"):
        s3.get_object(Bucket=bucket, Key="k", IfNoneMatch=etag)
    for wrong in (quoted(b"other"), quoted_md5(SMALL)):
        with pytest.raises(ClientError) as caught:
            s3.put_object(Bucket=bucket, Key="k", Body=b"new", IfMatch=wrong)
        assert code_of(caught) == (412, "PreconditionFailed")
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k", CopySourceIfMatch=etag)
    s3.put_object(Bucket=bucket, Key="k", Body=b"new", IfMatch=etag)
    found = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "k", "ETag": quoted(b"new")}]})
    assert "Errors" not in found


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("fields", [{}, {"ChecksumAlgorithm": "CRC32"}, {"ChecksumAlgorithm": "SHA1"}])
def test_parts(s3: Any, store: str, fields: dict[str, str]) -> None:
    bucket = make(s3, store)
    etags, done = upload(s3, bucket, "k", PART, LARGE, **fields)
    assert etags == [quoted(PART), quoted(LARGE)]
    assert re.fullmatch('"[0-9a-f]{24}-2"', done["ETag"]), "its number of parts, and the form of no MD5"
    assert s3.head_object(Bucket=bucket, Key="k")["ETag"] == done["ETag"]
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == PART + LARGE


def test_parts_with_content_md5_have_the_etag_of_aws(s3: Any) -> None:
    bucket = make(s3, "quick")
    etags, done = upload(s3, bucket, "k", PART, LARGE, md5=True)
    assert etags == [quoted_md5(PART), quoted_md5(LARGE)]
    digests = hashlib.md5(PART).digest() + hashlib.md5(LARGE).digest()
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-2"'


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize(("start", "end"), [("usual", "quick"), ("usual", "plain"), ("plain", "quick")])
@pytest.mark.parametrize("algorithm", ["CRC64NVME", "SHA256"])
def test_copies_between_stores_have_the_etag_of_a_put_there(
    s3: Any, start: str, end: str, body: bytes, algorithm: str
) -> None:
    buckets = {store: make(s3, store) for store in (start, end)}
    expected = {store: (quoted_md5 if store == "usual" else quoted)(body) for store in buckets}
    for first, second in ((start, end), (end, start)):
        put = s3.put_object(Bucket=buckets[first], Key="k", Body=body, ChecksumAlgorithm=algorithm)
        assert put["ETag"] == expected[first]
        copied = s3.copy_object(Bucket=buckets[second], Key="copy", CopySource=f"{buckets[first]}/k")
        assert copied["CopyObjectResult"]["ETag"] == expected[second]
        found = s3.get_object(Bucket=buckets[second], Key="copy")
        assert (found["ETag"], found["Body"].read()) == (expected[second], body)


def test_a_copied_object_of_parts_becomes_one_of_a_single_part(s3: Any) -> None:
    usual, quick = make(s3, "usual"), make(s3, "quick")
    for source, target, expected in ((usual, quick, quoted), (quick, usual, quoted_md5)):
        upload(s3, source, "k", PART, LARGE)
        copied = s3.copy_object(Bucket=target, Key="copy", CopySource=f"{source}/k")
        assert copied["CopyObjectResult"]["ETag"] == expected(PART + LARGE)


def test_shared_bytes_keep_their_etag(s3: Any) -> None:
    """Within a store no byte is read, and so what is there keeps the ETag that it has."""
    bucket = make(s3, "quick")
    md5 = base64.b64encode(hashlib.md5(LARGE).digest()).decode()
    s3.put_object(Bucket=bucket, Key="old", Body=LARGE, ContentMD5=md5)
    s3.put_object(Bucket=bucket, Key="new", Body=LARGE)
    for key, etag in (("old", quoted_md5(LARGE)), ("new", quoted(LARGE))):
        copied = s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/{key}")
        assert copied["CopyObjectResult"]["ETag"] == etag


def test_copied_parts(s3: Any) -> None:
    usual, quick = make(s3, "usual"), make(s3, "quick")
    for bucket in (usual, quick):
        s3.put_object(Bucket=bucket, Key="source", Body=PART)
    address = {"Bucket": quick, "Key": "k"}
    address["UploadId"] = s3.create_multipart_upload(**address)["UploadId"]
    parts = []
    for number, (source, count) in enumerate(((usual, len(PART)), (quick, len(PART)), (quick, 1000)), 1):
        asked = {"CopySource": f"{source}/source", "CopySourceRange": f"bytes=0-{count - 1}"}
        etag = s3.upload_part_copy(**address, PartNumber=number, **asked)["CopyPartResult"]["ETag"]
        assert etag == quoted(PART[:count])
        parts.append({"PartNumber": number, "ETag": etag})
    done = s3.complete_multipart_upload(**address, MultipartUpload={"Parts": parts})
    assert re.fullmatch('"[0-9a-f]{24}-3"', done["ETag"])
    assert s3.get_object(Bucket=quick, Key="k")["Body"].read() == PART * 2 + PART[:1000]


def test_appends(s3: Any) -> None:
    bucket = make(s3, "quick")
    seen = {s3.put_object(Bucket=bucket, Key="k", Body=LARGE)["ETag"]}
    for offset in (len(LARGE), len(LARGE) + len(SMALL)):
        seen.add(s3.put_object(Bucket=bucket, Key="k", Body=SMALL, WriteOffsetBytes=offset)["ETag"])
    found = s3.get_object(Bucket=bucket, Key="k")
    assert (len(seen), found["ETag"] in seen, found["Body"].read()) == (3, True, LARGE + SMALL * 2)
    assert found["ETag"].endswith('-3"')


def test_encryption(s3: Any) -> None:
    """As of MD5s: SSE-S3 shows what the bytes have, a key of the ring or the customer what reveals nothing of them."""
    bucket, usual = make(s3, "quick"), make(s3, "usual")
    key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "k" * 32}
    assert s3.put_object(Bucket=bucket, Key="s3", Body=LARGE, ServerSideEncryption="AES256")["ETag"] == quoted(LARGE)
    for name, fields in (("kms", {"ServerSideEncryption": "aws:kms"}), ("c", key)):
        etag = s3.put_object(Bucket=bucket, Key=name, Body=LARGE, **fields)["ETag"]
        assert etag != quoted(LARGE)
        assert re.fullmatch(f'"[0-9a-f]{{{len(quoted(LARGE)) - 12}}}-crc64nvme"', etag)
        source = {f"CopySource{field}": value for field, value in key.items()} if name == "c" else {}
        for target, expected in ((bucket, quoted(LARGE)), (usual, quoted_md5(LARGE))):
            asked = {"CopySource": f"{bucket}/{name}", "ServerSideEncryption": "AES256", **source}
            copied = s3.copy_object(Bucket=target, Key="copy", **asked)
            assert copied["CopyObjectResult"]["ETag"] == expected
            assert s3.get_object(Bucket=target, Key="copy")["Body"].read() == LARGE
    address = {"Bucket": bucket, "Key": "parts"}
    address["UploadId"] = s3.create_multipart_upload(**address, **key)["UploadId"]
    etag = s3.upload_part(**address, PartNumber=1, Body=SMALL, **key)["ETag"]
    assert s3.upload_part(**address, PartNumber=1, Body=SMALL, **key)["ETag"] == etag
    done = s3.complete_multipart_upload(**address, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]}, **key)
    assert done["ETag"].endswith('-1"')


def test_files_of_others(s3: Any, gateway: Gateway) -> None:
    bucket = make(s3, "plain")
    (gateway.data.parent / "plain" / bucket / "theirs").write_bytes(SMALL)
    eventually(lambda: s3.head_object(Bucket=bucket, Key="theirs")["ETag"] == quoted(SMALL), seconds=20)


def test_scrub_fsck_and_a_rebuild(tmp_path: Path) -> None:
    with configured(tmp_path) as gateway:
        s3 = client(gateway.endpoint)
        bucket, plain = make(s3, "quick"), make(s3, "plain")
        for key, body in (("small", SMALL), ("large", LARGE), ("empty", b"")):
            s3.put_object(Bucket=bucket, Key=key, Body=body)
            s3.put_object(Bucket=plain, Key=key, Body=body)
        s3.put_object(Bucket=bucket, Key="sealed", Body=LARGE, ServerSideEncryption="AES256")
        upload(s3, bucket, "parts", PART, SMALL)
        before = listed(s3, bucket, plain)
        for command in ("scrub", "fsck"):
            assert gateway.run(command).returncode == 0
        (file,) = [path for path in (tmp_path / "quick" / "data").glob("*/*") if LARGE in path.read_bytes()]
        damage(file, LARGE)
        found = gateway.run("scrub", "--json", check=False)
        assert found.returncode == 8
        assert [one["key"] for one in json.loads(found.stdout)["damaged"]] == ["large"]
        damage(file, LARGE)
        gateway.run("scrub")
        gateway.stop()
        shutil.rmtree(tmp_path / "usual" / "index")
        gateway.run("rebuild")
        gateway.start()
        s3 = client(gateway.endpoint)
        assert listed(s3, bucket, plain) == before
        assert s3.get_object(Bucket=bucket, Key="large", IfMatch=quoted(LARGE))["Body"].read() == LARGE
        gateway.run("scrub")


def listed(s3: Any, *buckets: str) -> dict[str, str]:
    """ETags by bucket and key."""
    entries = [(bucket, entry) for bucket in buckets for entry in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    return {f"{bucket}/{entry['Key']}": entry["ETag"] for bucket, entry in entries}


def damage(path: Path, body: bytes) -> None:
    """Change one bit of a file with this body, or change it back."""
    content = bytearray(path.read_bytes())
    content[content.index(body[:1000]) + 2000] ^= 1
    path.write_bytes(content)
