"""Group E: names of buckets, paths in documents and headers, hosts, and what somebody plants in the tree."""

from __future__ import annotations

import base64
import itertools
import os
import re
from urllib.parse import quote, unquote

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import CLIMBING, GROUND, OTHERS, SMALL, Site, delete_many, path_of, put
from tests.support.raw_http import Request

LARGE = 20_000
"""So often a few words are a body with a file of its own."""
BUCKETS = [
    *("..", ".", "...", "a..b", "ab", "a", ".ab", "ab.", "a b", "a+b", "a%b", "ü-bucket", "a*b", "a,b", "a" * 256),
    *("a\0b", "a\nb", "a\\b", "b?x", "b#x", "$(id)", "a;b"),
]
"""Names that AWS never took."""
OLD_BUCKETS = [
    *("192.168.0.1", "1.2.3.4", "xn--bucket", "sthree-x", "x-s3alias", "x--ol-s3", "a" * 64, "a" * 255),
    *("UPPER", "Bucket", "a_b", "-ab", "ab-", "___"),
]
"""Names that only buckets made before 2018 can have."""


@pytest.mark.parametrize("name", **cases(BUCKETS))
def test_e57_bucket_name(site: Site, name: str) -> None:
    path = "/" + quote(name, safe="-._~")
    for request in (
        Request("PUT", path),
        Request("GET", path),
        Request("HEAD", path),
        Request("DELETE", path),
        Request("PUT", path + "/key", body=b"evil"),
        Request("GET", path + "/key"),
    ):
        site.refused(site.sign(request), 400, "InvalidBucketName")


@pytest.mark.parametrize("name", **cases(OLD_BUCKETS))
def test_e57_name_of_an_old_bucket(site: Site, name: str) -> None:
    """There may be such a bucket, and so it is looked up; none can be made any more."""
    site.refused(site.sign(Request("PUT", f"/{name}")), 400, "InvalidBucketName")
    for request in (
        Request("GET", f"/{name}"),
        Request("GET", f"/{name}", "location"),
        Request("HEAD", f"/{name}"),
        Request("DELETE", f"/{name}"),
        Request("PUT", f"/{name}/key", body=b"evil"),
        Request("GET", f"/{name}/key"),
        Request("HEAD", f"/{name}/key"),
    ):
        site.refused(site.sign(request), 404, "NoSuchBucket")


def test_e57_bucket_names_that_are_right(site: Site) -> None:
    for name in ("abc", "a" * 63, "1.2.3", "a.b-c.9", "1-2", "999"):
        site.ok(Request("PUT", f"/{name}"))
        site.ok(Request("DELETE", f"/{name}"), status=204)


def test_e58_climbing_keys_in_delete_objects(site: Site) -> None:
    escaped = [key.replace("&", "&amp;") for key in CLIMBING]
    answer = site.ok(delete_many(GROUND, *escaped, "a" * 1025, "no/such/key"))
    codes = [error.findtext("Code") for error in answer.tree().iter("Error")]
    assert codes == ["InvalidURI"] * len(CLIMBING) + ["KeyTooLongError"]
    assert len(answer.all("Deleted")) == 1


def test_e58_delete_objects_deletes_nothing_but_its_keys(site: Site) -> None:
    bucket = site.fresh()
    keys = ["a", "a/b", "a/b/c", "./a", "a/../a", "A", "a ", " a", "%61", "*"]
    for key in keys:
        site.ok(put(bucket, key))
    site.ok(delete_many(bucket, "a/b", "*", "a/../a", "%61"))
    assert site.keys(bucket) == sorted({"a", "a/b/c", "./a", "A", "a ", " a"}, key=str.encode)


SOURCES = {
    "climbs": (f"/{GROUND}/../{OTHERS}/secret", "InvalidURI"),
    "climbs, escaped": (f"/{GROUND}/%2e%2e/{OTHERS}/secret", "InvalidURI"),
    "climbs, slashes escaped": (f"{GROUND}%2F..%2F..%2Fetc%2Fpasswd", "InvalidURI"),
    "absolute": ("/etc/passwd", "NoSuchBucket"),
    "dots as bucket": ("/../etc/passwd", "InvalidBucketName"),
    "empty": ("", "InvalidArgument"),
    "a slash": ("/", "InvalidArgument"),
    "slashes": ("//", "InvalidArgument"),
    "bucket only": (f"/{GROUND}", "InvalidArgument"),
    "bucket and slash": (f"/{GROUND}/", "InvalidArgument"),
    "broken escape": (f"/{GROUND}/%zz", "InvalidURI"),
    "not UTF-8": (f"/{GROUND}/%FF", "InvalidURI"),
    "too long": (f"/{GROUND}/" + "a" * 1025, "KeyTooLongError"),
    "URL": (f"http://localhost/{GROUND}/keep/small", "InvalidBucketName"),
    "ARN": (f"arn:aws:s3:us-east-1:1:accesspoint/{GROUND}/object/keep/small", "InvalidBucketName"),
    "upper case": (f"/{GROUND.upper()}/keep/small", "NoSuchBucket"),
    "file": ("file:///etc/passwd", "InvalidBucketName"),
}


@pytest.mark.parametrize("name", **cases(SOURCES))
def test_e58_copy_source(site: Site, name: str) -> None:
    source, code = SOURCES[name]
    part = f"partNumber=2&uploadId={site.upload}"
    for target in (
        put(GROUND, "evil", b"", x_amz_copy_source=source),
        Request("PUT", path_of(GROUND, "keep/upload"), part, (("x-amz-copy-source", source),)),
    ):
        answer = site.ask(site.sign(target))
        assert answer.code == code, answer
        assert answer.status == (404 if code.startswith("NoSuch") else 400)


def test_e58_prefix_marker_and_token(site: Site) -> None:
    for value in ("..%2F", "..%2F..%2Fetc", "%2Fetc%2Fpasswd", "%00", "%252e", "%F4%8F%BF%BF", "a" * 2000):
        for name in ("prefix", "marker", "delimiter", "start-after", "key-marker", "upload-id-marker"):
            for kind in ("", "&list-type=2", "&uploads", "&versions"):
                answer = site.ask(site.sign(Request("GET", f"/{GROUND}", f"encoding-type=url&{name}={value}{kind}")))
                assert answer.status in (200, 400), (name, kind, answer)
                assert "secret" not in answer.body.decode()


TOKENS = {
    "garbage": "garbage",
    "path": "../../etc/passwd",
    "no version": base64.urlsafe_b64encode(b"key").decode(),
    "not UTF-8": base64.urlsafe_b64encode(b"1\xff\xfe").decode(),
    "SQL": "' OR 1=1 --",
    "NUL": "\0",
    "long": "A" * 8000,
}


@pytest.mark.parametrize("name", **cases(TOKENS))
def test_e58_continuation_token(site: Site, name: str) -> None:
    query = f"continuation-token={quote(TOKENS[name], safe='')}"
    site.refused(site.sign(Request("GET", f"/{GROUND}", f"{query}&list-type=2")), 400, "InvalidArgument")
    site.refused(site.sign(Request("GET", "/", query)), 400, "InvalidArgument")


def test_e58_another_buckets_token_shows_nothing_of_it(site: Site) -> None:
    token = quote(base64.urlsafe_b64encode(b"1sec").decode(), safe="")
    answer = site.ok(Request("GET", f"/{GROUND}", f"continuation-token={token}&list-type=2"))
    assert answer.all("Key") == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("name", ["uploadId", "versionId"])
@pytest.mark.parametrize(
    "value", ["..%2F..%2Fetc%2Fpasswd", "%00", "' OR 1=1", "x", "0" * 48, "f" * 5000, "-1", "%C3%BC"]
)
def test_e58_ids_that_are_none(site: Site, method: str, name: str, value: str) -> None:
    value = quote(unquote(value), safe="")
    code = "NoSuchUpload" if name == "uploadId" else "NoSuchVersion"
    answer = site.ask(site.sign(Request(method, path_of(GROUND, "keep/small"), f"{name}={value}")))
    assert (answer.status, answer.code) in [(404, code), (400, "InvalidArgument")] or (
        name == "versionId" and method == "DELETE" and answer.status == 204
    )


def test_e59_version_id_hidden_in_the_key_of_a_copy_source(site: Site) -> None:
    source = f"/{GROUND}/k%3FversionId=..%2f..%2fetc%2fpasswd"
    site.refused(site.sign(put(GROUND, "evil", b"", x_amz_copy_source=source)), 404, "NoSuchKey")
    for version in ("..%2f..%2fetc%2fpasswd", "%00", "%2e%2e", "x", "null%00"):
        source = f"/{GROUND}/keep/small?versionId={version}"
        request = put(GROUND, "evil", b"", x_amz_copy_source=source)
        site.refused(site.sign(request), 400, "InvalidArgument")
    bucket = site.fresh()
    site.ok(put(bucket, "k?versionId=x", b"odd key"))
    site.ok(put(bucket, "copy", b"", x_amz_copy_source=f"/{bucket}/k%3FversionId=x"))
    assert site.get(bucket, "copy") == b"odd key"


def blob_of(site: Site, body: bytes) -> str:
    """The path of the file that holds a body."""
    files = [path for path in (site.data / "data").glob("*/*") if path.is_file()]
    return next(str(path) for path in files if path.read_bytes().startswith(body))


@pytest.mark.parametrize("kind", ["link to a file", "link to another object", "loop", "dangling", "FIFO", "directory"])
def test_e60_planted_in_the_tree(site: Site, kind: str) -> None:
    """Whoever may write into the data directory owns the data, but he gains neither the host nor a hung worker."""
    bucket = site.fresh()
    body = f"to be replaced by {kind}".encode() * LARGE
    other = f"not {kind}".encode() * LARGE
    site.ok(put(bucket, "k", body))
    site.ok(put(bucket, "other", other))
    path = blob_of(site, body)
    os.unlink(path)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "directory":
        os.mkdir(path)
    else:
        aims = {"link to a file": "/etc/passwd", "link to another object": blob_of(site, other), "loop": path}
        os.symlink(aims.get(kind, path + ".none"), path)
    try:
        for _ in range(4):  # both workers
            site.refused(site.sign(Request("GET", path_of(bucket, "k"))), 503, "ServiceUnavailable")
        ranged = Request("GET", path_of(bucket, "k"), headers=(("range", "bytes=2-3"),))
        site.refused(site.sign(ranged), 503, "ServiceUnavailable")
        copied = put(GROUND, "evil", b"", x_amz_copy_source=f"/{bucket}/k", x_amz_checksum_algorithm="SHA256")
        site.refused(site.sign(copied), 503, "ServiceUnavailable")
        site.ok(put(bucket, "k", b"new"))
        assert site.get(bucket, "k") == b"new"
    finally:
        if kind == "directory":
            os.rmdir(path)


def test_e60_planted_where_a_body_will_be_written(site: Site) -> None:
    """A body is written to a new file or not at all."""
    bucket = site.fresh()
    site.ok(put(bucket, "first", b"body number one" * LARGE))
    used = {int(path.stem, 16) for path in (site.data / "data").glob("*/*")}
    victim = site.data.parent / "victim"
    victim.write_bytes(b"untouched")
    planted = []
    for number in range(max(used) - 64, max(used) + 64):
        path = site.data / "data" / f"{number & 0xFF:02x}" / f"{number:016x}"
        if number not in used:
            os.symlink(victim, path)
            planted.append(path)
    try:
        for number in range(8):
            answer = site.ask(site.sign(put(bucket, f"k{number}", b"body" * 4 * LARGE)))
            assert (answer.status, answer.code) in [(200, ""), (503, "ServiceUnavailable")]
    finally:
        for path in planted:
            path.unlink(missing_ok=True)
    assert victim.read_bytes() == b"untouched"


HOSTS = ["a/?x=", "x/docs?", "evil.example#", "@evil", "user@evil", "[::1", "a b", "..", "", "ground"]


@pytest.mark.parametrize("host", **cases(HOSTS))
def test_e61_a_host_does_not_change_the_path(site: Site, host: str) -> None:
    request = Request("DELETE", path_of(GROUND, "keep/none"), headers=(("host", host),))
    site.refused(request, 403, "AccessDenied") if host else site.ask(request)
    read = site.sign(Request("GET", path_of(GROUND, "keep/small"), headers=(("host", host),)))
    assert site.ask(read).body == SMALL


VIRTUAL = [
    "..s3.test",
    ".s3.test",
    "others/../ground.s3.test",
    "ground/.s3.test",
    "GROUND..s3.test",
    "a?.s3.test",
    "%67round.s3.test",
]


@pytest.mark.parametrize("host", **cases(VIRTUAL))
def test_e61_a_host_under_the_domain_that_names_no_bucket(site: Site, host: str) -> None:
    for method, path in (("GET", "/"), ("PUT", "/keep/small"), ("DELETE", "/keep/small"), ("PUT", "/")):
        request = Request(method, path, headers=(("host", host),), body=b"evil" if method == "PUT" else b"")
        site.refused(site.sign(request), 400, "InvalidBucketName", "InvalidURI", "BadRequest")


def test_e61_virtual_host_and_path_name_the_same_object(site: Site) -> None:
    for host in ("ground.s3.test", "GROUND.S3.TEST", "ground.s3.test:80"):
        request = Request("GET", "/keep/small", headers=(("host", host),))
        assert site.ask(site.sign(request)).body == SMALL
    # under a bucket's host every path is a key, also those of health checks and of other buckets
    for path in ("/-/health/live", "/minio/health/live", "/others/secret", "/ground/keep/small"):
        request = Request("GET", path, headers=(("host", "ground.s3.test"),))
        site.refused(site.sign(request), 404, "NoSuchKey")
        site.refused(request, 403, "AccessDenied")


TARGETS = [
    "http://evil.example/ground/keep/small",
    "https://ground.s3.test/keep/small",
    "@evil/ground/keep/small",
    "evil",
    "*",
    "//evil.example/ground/keep/small",
    "\\ground\\keep\\small",
    "/ground/keep/small#x",
    "/ground/keep/sm\xe4ll",
]


@pytest.mark.parametrize("target", **cases(TARGETS))
def test_e61_request_target(site: Site, target: str) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = site.ask(site.sign(Request(method, target)))
        assert (answer.status, answer.code) in [
            (400, "InvalidURI"),
            (400, "BadRequest"),
            (400, "InvalidBucketName"),
            (404, "NoSuchBucket"),
        ], answer
        assert SMALL not in answer.body


def test_e52_listing_without_encoding_holds_every_key(site: Site) -> None:
    """XML 1.0 cannot hold all characters; AWS writes references nevertheless, and so does this listing."""
    bucket = site.fresh()
    keys = ["a\x01b", "a<b>&\"'", "a\r\nb", "\ud7ff\ue000\ufffd", "\U0010ffff"]
    for key in keys:
        site.ok(put(bucket, key))
    text = site.ok(Request("GET", path_of(bucket))).body.decode()
    listed = re.findall("<Key>(.*?)</Key>", text, re.DOTALL)
    assert len(listed) == len(keys)
    assert all(not set(key) & set("<>\r\x01") for key in itertools.chain(listed))
