"""A store of layout tree: objects are plain files, and what others do to them is seen."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support import postgres, quick
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.places import tree_at
from tests.support.waiting import eventually

LARGE = os.urandom(5 << 20)
SLOW_EDIT_SECONDS = 0.01
"""The grain of times on a local disk: who edits a file for longer in one call is not seen while doing so."""


def plain(directory: Path, every: float = 0) -> Gateway:
    """A gateway whose store is of layout tree, scanned every so many seconds."""
    env = {"SLUICE_TREE_SCAN_INTERVAL": str(every)}
    return Gateway(directory / "data", env=env, place=tree_at(directory / "tree"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with plain(tmp_path_factory.mktemp("tree")) as running:
        yield running


@pytest.fixture(scope="module")
def s3(tree: Gateway) -> Any:
    return client(tree.endpoint)


@pytest.fixture
def bucket(s3: Any, request: pytest.FixtureRequest) -> str:
    name = request.node.name.lower().replace("_", "-").split("[")[0][:40].strip("-") + f"-{os.urandom(3).hex()}"
    s3.create_bucket(Bucket=name)
    return name


def path_of(tree: Gateway, bucket: str, key: str) -> Path:
    return tree.store / bucket / key


def read(s3: Any, bucket: str, key: str) -> bytes:
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read()  # type: ignore[no-any-return]


def code_of(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def keys(s3: Any, bucket: str) -> list[str]:
    return [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def wait(s3: Any, bucket: str, key: str, etag: str) -> None:
    """Until the true ETag is there."""
    eventually(lambda: s3.head_object(Bucket=bucket, Key=key)["ETag"] == etag)


def md5(body: bytes) -> str:
    return f'"{hashlib.md5(body).hexdigest()}"'


# written by the gateway


def test_an_object_is_a_plain_file(tree: Gateway, s3: Any, bucket: str) -> None:
    for key, body in (("a", b"small"), ("x/y/z.txt", LARGE), ("empty", b"")):
        s3.put_object(Bucket=bucket, Key=key, Body=body, Metadata={"m": "v"})
        assert path_of(tree, bucket, key).read_bytes() == body
        found = s3.get_object(Bucket=bucket, Key=key)
        assert (found["Body"].read(), found["ETag"], found["Metadata"]) == (body, md5(body), {"m": "v"})
    s3.delete_object(Bucket=bucket, Key="x/y/z.txt")
    assert not path_of(tree, bucket, "x/y/z.txt").exists()
    assert keys(s3, bucket) == ["a", "empty"]


def test_a_file_where_a_directory_is_needed(s3: Any, tree: Gateway, bucket: str) -> None:
    names = ["a", "a/b", "a/b/c", "d/e", "d", "a//b", "a/", "b/./c", ".sluice", "." * 300, "\N{SNOWMAN}/\n"]
    for key in names:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    assert sorted(keys(s3, bucket), key=str.encode) == sorted(names, key=str.encode)
    for key in names:
        assert read(s3, bucket, key) == key.encode()
    assert path_of(tree, bucket, "a").read_bytes() == b"a"
    for key in names:
        s3.put_object(Bucket=bucket, Key=key, Body=b"again " + key.encode())
    for key in names:
        assert read(s3, bucket, key) == b"again " + key.encode()
        s3.delete_object(Bucket=bucket, Key=key)
    assert keys(s3, bucket) == []
    s3.delete_bucket(Bucket=bucket)
    assert not (tree.store / bucket).exists()


def test_the_parts_of_a_multipart_object_are_told(tree: Gateway, s3: Any, bucket: str) -> None:
    upload = s3.create_multipart_upload(Bucket=bucket, Key="m", ChecksumAlgorithm="CRC32")["UploadId"]
    parts = []
    for number, body in ((1, LARGE), (2, b"end")):
        made = s3.upload_part(
            Bucket=bucket, Key="m", UploadId=upload, PartNumber=number, Body=body, ChecksumAlgorithm="CRC32"
        )
        parts.append({"PartNumber": number, "ETag": made["ETag"], "ChecksumCRC32": made["ChecksumCRC32"]})
    for _ in range(2):  # the second is told the same
        made = s3.complete_multipart_upload(Bucket=bucket, Key="m", UploadId=upload, MultipartUpload={"Parts": parts})
        assert made["ETag"].endswith('-2"')
    assert path_of(tree, bucket, "m").read_bytes() == LARGE + b"end"
    assert s3.get_object(Bucket=bucket, Key="m", PartNumber=2)["Body"].read() == b"end"
    shown = s3.get_object_attributes(Bucket=bucket, Key="m", ObjectAttributes=["ObjectParts"])["ObjectParts"]
    assert [part["Size"] for part in shown["Parts"]] == [len(LARGE), 3]
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/m")
    assert s3.head_object(Bucket=bucket, Key="copy")["ETag"] == md5(LARGE + b"end")


def test_one_of_many_creators_wins(tree: Gateway, bucket: str) -> None:
    def create(number: int) -> str:
        try:
            client(tree.endpoint).put_object(Bucket=bucket, Key="k", Body=b"%d" % number, IfNoneMatch="*")
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return str(number)

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(create, range(32)))
    winners = [answer for answer in answers if answer.isdigit()]
    assert len(winners) == 1
    assert set(answers) - set(winners) == {"PreconditionFailed"}
    assert path_of(tree, bucket, "k").read_bytes() == winners[0].encode()
    assert read(client(tree.endpoint), bucket, "k") == winners[0].encode()


def test_many_writers_of_one_key(tree: Gateway, bucket: str) -> None:
    """Whoever reads meanwhile gets a body with its own ETag."""
    stop = threading.Event()
    wrong = []
    s3 = client(tree.endpoint)
    s3.put_object(Bucket=bucket, Key="k", Body=b"first" * 100_000)

    def look() -> None:
        reader = client(tree.endpoint)
        while not stop.is_set():
            found = reader.get_object(Bucket=bucket, Key="k")
            if md5(found["Body"].read()) != found["ETag"]:
                wrong.append(found["ETag"])

    def write(number: int) -> None:
        client(tree.endpoint).put_object(Bucket=bucket, Key="k", Body=b"%05d" % number * 100_000)

    with concurrent.futures.ThreadPoolExecutor(10) as threads:
        readers = [threads.submit(look) for _ in range(2)]
        list(threads.map(write, range(40)))
        stop.set()
        for reader in readers:
            reader.result()
    assert wrong == []
    assert read(s3, bucket, "k") == path_of(tree, bucket, "k").read_bytes()


# made, changed and taken away by others


def test_a_file_of_others_is_seen_on_read(tree: Gateway, s3: Any, bucket: str) -> None:
    path_of(tree, bucket, "d").mkdir()
    path_of(tree, bucket, "d/new.html").write_bytes(b"<p>")
    found = s3.get_object(Bucket=bucket, Key="d/new.html")
    assert (found["Body"].read(), found["ContentType"]) == (b"<p>", "text/html")
    assert keys(s3, bucket) == ["d/new.html"]
    wait(s3, bucket, "d/new.html", md5(b"<p>"))
    shown = s3.head_object(Bucket=bucket, Key="d/new.html", ChecksumMode="ENABLED")
    assert shown["ChecksumType"] == "FULL_OBJECT"
    assert shown["ChecksumCRC64NVME"]


def test_a_name_like_a_url_says_nothing_of_the_type(tree: Gateway, s3: Any, bucket: str) -> None:
    key = "data:x/y\r\nInjected: 1,"
    path_of(tree, bucket, key).parent.mkdir()
    path_of(tree, bucket, key).write_bytes(b"others")
    assert read(s3, bucket, key) == b"others"
    assert s3.head_object(Bucket=bucket, Key=key)["ContentType"] == "binary/octet-stream"


@pytest.mark.parametrize("in_place", [True, False])
def test_a_change_by_others_is_never_served_under_the_old_etag(
    tree: Gateway, s3: Any, bucket: str, in_place: bool
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"before")
    time.sleep(0.05)
    path = path_of(tree, bucket, "k")
    if in_place:
        path.write_bytes(b"after!")
    else:
        path.with_name("k.new").write_bytes(b"after!")
        path.with_name("k.new").rename(path)
    for answer in (s3.head_object(Bucket=bucket, Key="k"), s3.get_object(Bucket=bucket, Key="k")):
        assert answer["ETag"] != md5(b"before")
        if "Body" in answer:
            assert answer["Body"].read() == b"after!"
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="k", Body=b"mine", IfMatch=md5(b"before"))
    assert code_of(refused) == "PreconditionFailed"
    wait(s3, bucket, "k", md5(b"after!"))


def test_a_file_taken_away_by_others(tree: Gateway, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"x")
    path_of(tree, bucket, "k").unlink()
    with pytest.raises(ClientError) as missing:
        s3.get_object(Bucket=bucket, Key="k")
    assert code_of(missing) == "NoSuchKey"
    assert keys(s3, bucket) == []
    s3.put_object(Bucket=bucket, Key="k", Body=b"again", IfNoneMatch="*")
    assert read(s3, bucket, "k") == b"again"


def test_conditions_are_on_what_is_there(tree: Gateway, s3: Any, bucket: str) -> None:
    path_of(tree, bucket, "k").write_bytes(b"others'")
    with pytest.raises(ClientError) as refused:
        s3.put_object(Bucket=bucket, Key="k", Body=b"mine", IfNoneMatch="*")
    assert code_of(refused) == "PreconditionFailed"
    s3.delete_object(Bucket=bucket, Key="k")
    assert not path_of(tree, bucket, "k").exists()


def test_a_bucket_with_files_of_others_is_not_empty(tree: Gateway, s3: Any, bucket: str) -> None:
    path_of(tree, bucket, "k").write_bytes(b"x")
    with pytest.raises(ClientError) as refused:
        s3.delete_bucket(Bucket=bucket)
    assert code_of(refused) == "BucketNotEmpty"
    path_of(tree, bucket, "k").unlink()
    s3.delete_bucket(Bucket=bucket)
    assert not (tree.store / bucket).exists()


def test_links_and_pipes_are_no_objects(tree: Gateway, s3: Any, bucket: str) -> None:
    path_of(tree, bucket, "link").symlink_to("/etc/passwd")
    os.mkfifo(path_of(tree, bucket, "pipe"))
    path_of(tree, bucket, "dir").symlink_to("/etc")
    for key in ("link", "pipe", "dir/passwd"):
        with pytest.raises(ClientError) as missing:
            s3.get_object(Bucket=bucket, Key=key)
        assert code_of(missing) == "NoSuchKey"
        s3.put_object(Bucket=bucket, Key=key, Body=b"x")
        assert read(s3, bucket, key) == b"x"
    assert os.readlink(path_of(tree, bucket, "link")) == "/etc/passwd"
    assert Path("/etc/passwd").read_bytes() != b"x"


def test_edits_during_reads_never_give_a_mixture(tree: Gateway, s3: Any, bucket: str) -> None:
    """Every answer that ends whole is one content, the one of its ETag."""
    size = 4 << 20
    path = path_of(tree, bucket, "k")
    path.write_bytes(b"a" * size)
    stop = threading.Event()
    slow: list[tuple[float, float]] = []

    def edit() -> None:
        letter = 0
        while not stop.is_set():
            letter = (letter + 1) % 26
            body = bytes([97 + letter]) * size
            if letter % 2:
                with path.open("r+b") as file:
                    begun = time.monotonic()
                    file.write(body)
                    if time.monotonic() > begun + SLOW_EDIT_SECONDS:
                        slow.append((begun, time.monotonic()))
            else:
                path.with_name("k.new").write_bytes(body)
                path.with_name("k.new").rename(path)
            time.sleep(letter % 5 * 0.03)  # also for as long as a busy machine needs to read all of it

    editor = threading.Thread(target=edit)
    editor.start()
    whole, etags = 0, {}
    mixed: list[tuple[float, float]] = []
    try:
        enough = time.monotonic() + sized(3, 60)
        while time.monotonic() < enough or (len(etags) < 2 and time.monotonic() < enough + 60):
            begun = time.monotonic()
            try:
                found = s3.get_object(Bucket=bucket, Key="k")
                body = found["Body"].read()
            except Exception:
                continue  # cut off, or asked to try again
            whole += 1
            assert len(body) == size
            if len(set(body)) != 1:
                mixed.append((begun, time.monotonic()))
                continue
            assert etags.setdefault(found["ETag"], body[0]) == body[0]
    finally:
        stop.set()
        editor.join()
    # an edit that stands still in the middle for longer than the grain of times is a content of its own to all readers
    assert all(any(first < end and begun < last for first, last in slow) for begun, end in mixed)
    assert whole
    assert len(etags) > 1


def test_copies_between_layouts(tree: Gateway, s3: Any, bucket: str) -> None:
    path_of(tree, bucket, "k").write_bytes(LARGE)
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=f"{bucket}/k")
    assert s3.head_object(Bucket=bucket, Key="copy")["ETag"] == md5(LARGE)
    assert path_of(tree, bucket, "copy").read_bytes() == LARGE
    s3.copy_object(Bucket=bucket, Key="copy/of/copy", CopySource=f"{bucket}/copy")
    assert read(s3, bucket, "copy/of/copy") == LARGE
    path_of(tree, bucket, "k").write_bytes(b"now other bytes")
    assert read(s3, bucket, "copy") == LARGE


# import


def test_import(tmp_path: Path) -> None:
    count = sized(2000, 100_000)
    gateway = plain(tmp_path)
    bodies = {f"d{number % 50}/f{number}.txt": b"%d" % number * (number % 97) for number in range(count)}
    with gateway:
        pass  # makes index and account
    root = gateway.store / "adopted"
    for number in range(50):
        (root / f"d{number}").mkdir(parents=True)
    for key, body in bodies.items():
        (root / key).write_bytes(body)
    (root / "link").symlink_to("/etc/passwd")
    done = gateway.run("import", "adopted", "--no-hash", "--json")
    report = json.loads(done.stdout)
    assert (report["files"], report["adopted"], report["skipped"], report["hashed"]) == (count, count, 1, 0)
    with gateway:
        s3 = client(gateway.endpoint)
        listed = {
            entry["Key"]: entry
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket="adopted")
            for entry in page["Contents"]
        }
        assert {key: entry["Size"] for key, entry in listed.items()} == {k: len(b) for k, b in bodies.items()}
        json.loads(gateway.run("import", "adopted", "--json").stdout)  # waits for the hashes, beside the server

        def etags() -> dict[str, str]:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket="adopted")
            return {entry["Key"]: entry["ETag"] for page in pages for entry in page["Contents"]}

        hashed = {key: md5(body) for key, body in bodies.items()}
        eventually(lambda: etags() == hashed, "those that the server took first are hashed too")
        again = json.loads(gateway.run("import", "adopted", "--json").stdout)
        assert (again["adopted"], again["hashed"]) == (0, 0)
        (root / "d1" / "f1.txt").unlink()
        (root / "new").write_bytes(b"new")
        time.sleep(0.1)
        again = json.loads(gateway.run("import", "adopted", "--json").stdout)
        assert (again["adopted"], again["vanished"]) == (1, 1)
    assert gateway.run("fsck").returncode == 0


def test_a_directory_with_files_is_not_for_whoever_may_make_buckets(tree: Gateway, s3: Any) -> None:
    """What lies beside the buckets, or was left where one was, is the operator's to give."""
    private = path_of(tree, "private-files", "in/a/secret")
    private.parent.mkdir(parents=True)
    private.write_bytes(b"secret")
    with pytest.raises(ClientError) as refused:
        s3.create_bucket(Bucket="private-files")
    assert code_of(refused) == "BucketAlreadyExists"
    with pytest.raises(ClientError) as refused:
        s3.get_object(Bucket="private-files", Key="in/a/secret")
    assert code_of(refused) == "NoSuchBucket"
    assert private.read_bytes() == b"secret"
    tree.run("import", "private-files", "--no-hash")
    assert read(s3, "private-files", "in/a/secret") == b"secret"
    (tree.store / "empty-directories" / "a" / "b").mkdir(parents=True)
    s3.create_bucket(Bucket="empty-directories")


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_directory_becomes_no_bucket(tree: Gateway, s3: Any, tmp_path: Path, kind: str) -> None:
    name = f"no-directory-{kind}"
    path = tree.store / name
    if kind == "link":
        path.symlink_to(tmp_path)
    else:
        path.write_bytes(b"x")
    with pytest.raises(ClientError) as refused:
        s3.create_bucket(Bucket=name)
    assert code_of(refused) == "BucketAlreadyExists"
    ended = tree.run("import", name, check=False)
    assert ended.returncode == 1
    assert "no directory of a bucket" in ended.stderr
    assert name not in [each["Name"] for each in s3.list_buckets()["Buckets"]]


def test_import_says_what_is_wrong(tree: Gateway, tmp_path: Path) -> None:
    assert tree.run("import", "No_Bucket", check=False).returncode == 1
    assert "nothere" in tree.run("import", "b-1", "--store", "nothere", check=False).stderr
    assert "no account" in tree.run("import", "b-2", "--owner", "nobody", check=False).stderr


def test_a_scan_sees_what_others_did(tmp_path: Path) -> None:
    gateway = plain(tmp_path, 0.2)
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="gone", Body=b"x")
        s3.put_object(Bucket="bucket", Key="changed", Body=b"x")
        (gateway.store / "bucket" / "gone").unlink()
        (gateway.store / "bucket" / "changed").write_bytes(b"changed")
        (gateway.store / "bucket" / "made").write_bytes(b"made")
        wanted = {"changed": md5(b"changed"), "made": md5(b"made")}
        listed = partial(s3.list_objects_v2, Bucket="bucket")
        eventually(lambda: {one["Key"]: one["ETag"] for one in listed().get("Contents", [])} == wanted)


def test_an_unmounted_store_is_not_empty(tmp_path: Path) -> None:
    gateway = plain(tmp_path, 0.2)
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        s3.put_object(Bucket="bucket", Key="k", Body=b"x")
        (gateway.store / "bucket").rename(gateway.store / "away")
        with pytest.raises(ClientError) as refused:
            s3.get_object(Bucket="bucket", Key="k")
        assert code_of(refused) == "ServiceUnavailable"
        time.sleep(1)
        assert keys(s3, "bucket") == ["k"]
        (gateway.store / "away").rename(gateway.store / "bucket")
        assert read(s3, "bucket", "k") == b"x"


def test_rebuild(tmp_path: Path) -> None:
    gateway = plain(tmp_path)
    with gateway:
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket="bucket")
        for key, body in (("kept", b"kept"), ("a//b", b"escaped"), ("changed", b"x"), ("gone", b"x")):
            s3.put_object(Bucket="bucket", Key=key, Body=body, Metadata={"m": key})
    (gateway.store / "bucket" / "changed").write_bytes(b"changed")
    (gateway.store / "bucket" / "gone").unlink()
    (gateway.store / "bucket" / "new").write_bytes(b"new")
    if postgres.CHOSEN == "sqlite":
        report = json.loads(gateway.run("rebuild", "--replace", "--json").stdout)
    else:  # it is made in SQLite, and goes from there
        made = f"sqlite:///{tmp_path}/made.db"
        report = json.loads(gateway.run("rebuild", "--json", "--index", made).stdout)
        gateway.env |= {"SLUICE_INDEX": postgres.server().fresh()}
        copy = [*gateway.command, "index", "copy", made, gateway.env["SLUICE_INDEX"]]
        quick.run(copy, gateway.environment(), check=True, timeout=120)
    assert report["counts"]["versions"] == 4
    with gateway:
        s3 = client(gateway.endpoint)
        for key, body in (("kept", b"kept"), ("a//b", b"escaped")):
            found = s3.get_object(Bucket="bucket", Key=key)
            assert (found["Body"].read(), found["ETag"], found["Metadata"]) == (body, md5(body), {"m": key})
        assert read(s3, "bucket", "changed") == b"changed"
        assert read(s3, "bucket", "new") == b"new"
        with pytest.raises(ClientError) as missing:
            s3.get_object(Bucket="bucket", Key="gone")
        assert code_of(missing) == "NoSuchKey"
