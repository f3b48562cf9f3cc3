"""Group H: digests, parts, ranges, and documents of what is not built."""

from __future__ import annotations

import base64
import gzip
from hashlib import md5, sha256

import pytest

from tests.integration.negative.checks import cases, xml
from tests.integration.negative.site import GROUND, PART_ETAG, SMALL, Site, content_md5, path_of, put
from tests.support.raw_http import Request

MIB = 1 << 20


def base(algorithm: str, body: bytes) -> str:
    return base64.b64encode({"md5": md5, "sha256": sha256}[algorithm](body).digest()).decode()


DIGESTS: dict[str, tuple[tuple[tuple[str, str], ...], int, str]] = {
    "MD5 of something else": ((("content-md5", base("md5", b"x")),), 400, "BadDigest"),
    "MD5 that is none": ((("content-md5", "x"),), 400, "InvalidDigest"),
    "MD5 in hex": ((("content-md5", md5(b"evil").hexdigest()),), 400, "InvalidDigest"),
    "MD5 too short": ((("content-md5", base64.b64encode(b"x" * 15).decode()),), 400, "InvalidDigest"),
    "MD5 empty": ((("content-md5", ""),), 400, "InvalidDigest"),
    "MD5 with more behind": ((("content-md5", base("md5", b"evil") + "AAAA"),), 400, "InvalidDigest"),
    "SHA256 of something else": ((("x-amz-checksum-sha256", base("sha256", b"x")),), 400, "BadDigest"),
    "SHA256 that is none": ((("x-amz-checksum-sha256", "x"),), 400, "InvalidRequest"),
    "SHA256 in hex": ((("x-amz-checksum-sha256", sha256(b"evil").hexdigest()),), 400, "InvalidRequest"),
    "CRC32 of something else": ((("x-amz-checksum-crc32", "AAAAAA=="),), 400, "BadDigest"),
    "CRC32 of eight bytes": ((("x-amz-checksum-crc32", "AAAAAAAAAAA="),), 400, "InvalidRequest"),
    "CRC32 empty": ((("x-amz-checksum-crc32", ""),), 400, "InvalidRequest"),
    "CRC64NVME of something else": ((("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),), 400, "BadDigest"),
    "SHA1 of something else": ((("x-amz-checksum-sha1", base64.b64encode(b"x" * 20).decode()),), 400, "BadDigest"),
    "two checksums": (
        (("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-checksum-sha256", base("sha256", b"evil"))),
        400,
        "InvalidRequest",
    ),
    "checksum of another algorithm": (
        (("x-amz-sdk-checksum-algorithm", "CRC32"), ("x-amz-checksum-sha256", base("sha256", b"evil"))),
        400,
        "InvalidRequest",
    ),
    "algorithm without checksum": ((("x-amz-sdk-checksum-algorithm", "CRC32"),), 400, "InvalidRequest"),
    "unknown algorithm": ((("x-amz-sdk-checksum-algorithm", "CRC31"),), 400, "InvalidRequest"),
    "unknown checksum": ((("x-amz-checksum-crc31", "AAAAAA=="),), 400, "InvalidRequest"),
    "composite": ((("x-amz-checksum-crc32", "AAAAAA==-2"),), 400, "InvalidRequest"),
    "right MD5 and wrong checksum": (
        (("content-md5", base("md5", b"evil")), ("x-amz-checksum-crc32", "AAAAAA==")),
        400,
        "BadDigest",
    ),
}


@pytest.mark.parametrize("name", **cases(DIGESTS))
def test_h89_digests(site: Site, name: str) -> None:
    fields, status, code = DIGESTS[name]
    part = Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=1&uploadId={site.upload}", body=b"evil")
    for target in (put(GROUND, "evil"), put(GROUND, "keep/small"), part):
        site.refused(site.sign(target.having(*fields)), status, code)
        site.refused(site.sign(target.having(*fields), payload="UNSIGNED-PAYLOAD"), status, code)


@pytest.mark.parametrize("name", **cases([name for name in DIGESTS if not name.startswith("right")]))
def test_h89_digests_of_delete_objects(site: Site, name: str) -> None:
    fields, status, code = DIGESTS[name]
    body = xml("Delete", "<Object><Key>keep/small</Key></Object>")
    site.refused(site.sign(Request("POST", path_of(GROUND), "delete", fields, body)), status, code)


def test_h89_delete_objects_without_any_digest(site: Site) -> None:
    body = xml("Delete", "<Object><Key>keep/small</Key></Object>")
    site.refused(site.sign(Request("POST", path_of(GROUND), "delete", body=body)), 400, "InvalidRequest")
    for name in ("x-amz-checksum-type", "x-amz-checksum-algorithm", "x-amz-checksum-mode"):
        value = "CRC32" if name.endswith("algorithm") else "FULL_OBJECT"
        request = Request("POST", path_of(GROUND), "delete", ((name, value),), body)
        site.refused(site.sign(request), 400, "InvalidRequest")


def test_h89_a_large_body_with_a_wrong_digest(site: Site) -> None:
    for key in ("evil", "keep/small"):
        request = put(GROUND, key, b"e" * 3 * MIB, x_amz_checksum_crc32="AAAAAA==")
        site.refused(site.sign(request), 400, "BadDigest")


def test_h90_compressed_bodies_stay_compressed(site: Site) -> None:
    """Nothing is decompressed anywhere, so there is no bomb."""
    bomb = gzip.compress(b"\0" * 50 * MIB)
    bucket = site.fresh()
    site.ok(put(bucket, "k", bomb, content_encoding="gzip"))
    stored = site.ok(Request("GET", path_of(bucket, "k"), headers=(("accept-encoding", "identity"),)))
    assert (stored.body, stored.headers["content-encoding"]) == (bomb, "gzip")
    body = gzip.compress(xml("Delete", "<Object><Key>keep/small</Key></Object>"))
    request = Request("POST", path_of(GROUND), "delete", (content_md5(body), ("content-encoding", "gzip")), body)
    site.refused(site.sign(request), 400, "MalformedXML")


def part(number: object, etag: str = PART_ETAG) -> str:
    return f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"


TWO = md5(b"part two", usedforsecurity=False).hexdigest()
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "descending": (part(2, TWO) + part(1), ("InvalidPartOrder",)),
    "twice": (part(1) + part(1), ("InvalidPartOrder",)),
    "never uploaded": (part(1) + part(3), ("InvalidPart",)),
    "wrong ETag": (part(1, "0" * 32), ("InvalidPart",)),
    "ETag of another part": (part(1, TWO), ("InvalidPart",)),
    "ETag that is none": (part(1, "x"), ("InvalidPart",)),
    "empty ETag": (part(1, ""), ("InvalidPart",)),
    "ETag of 1 MB": (part(1, "0" * MIB), ("InvalidPart",)),
    "small one in the middle": (part(1) + part(2, TWO), ("EntityTooSmall",)),
    "number 0": (part(0), ("InvalidPart", "InvalidArgument")),
    "number 10001": (part(10001), ("InvalidPart", "InvalidArgument")),
    "number -1": (part(-1), ("MalformedXML",)),
    "number of 5000 digits": (part("9" * 5000), ("MalformedXML",)),
    "number 1.0": (part("1.0"), ("MalformedXML",)),
    "number not ASCII": (part("\u0661"), ("MalformedXML",)),
    "no number": (f"<Part><ETag>{PART_ETAG}</ETag></Part>", ("MalformedXML",)),
    "no ETag": ("<Part><PartNumber>1</PartNumber></Part>", ("MalformedXML",)),
    "number twice": (part(1).replace("<ETag>", "<PartNumber>2</PartNumber><ETag>"), ("MalformedXML",)),
    "wrong checksum": (
        part(1).replace("</Part>", "<ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></Part>"),
        ("InvalidPart",),
    ),
    "unknown element": (part(1).replace("</Part>", "<Evil/></Part>"), ("MalformedXML",)),
}


@pytest.mark.parametrize("name", **cases(PARTS))
def test_h91_parts_of_complete(site: Site, name: str) -> None:
    inner, codes = PARTS[name]
    bucket = site.fresh()
    upload = site.begin(bucket, "k", parts=(b"part one", b"part two"))
    request = Request("POST", path_of(bucket, "k"), f"uploadId={upload}", body=xml("CompleteMultipartUpload", inner))
    site.refused(site.sign(request), 400, *codes)
    assert site.keys(bucket) == []
    listed = site.ok(Request("GET", path_of(bucket, "k"), f"uploadId={upload}"))
    assert listed.all("ETag") == [f'"{PART_ETAG}"', f'"{TWO}"']


PROMISES: dict[str, tuple[tuple[str, str], ...]] = {
    "size": (("x-amz-mp-object-size", "9"),),
    "size of 50 TB": (("x-amz-mp-object-size", str(50 * 10**12)),),
    "size that is none": (("x-amz-mp-object-size", "x"),),
    "checksum": (("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),),
    "checksum of another algorithm": (("x-amz-checksum-crc32", "AAAAAA=="),),
    "checksum that is none": (("x-amz-checksum-crc64nvme", "x"),),
    "type": (("x-amz-checksum-type", "COMPOSITE"),),
}


@pytest.mark.parametrize("name", **cases(PROMISES))
def test_h91_promises_of_complete(site: Site, name: str) -> None:
    body = xml("CompleteMultipartUpload", part(1))
    request = Request("POST", path_of(GROUND, "keep/upload"), f"uploadId={site.upload}", PROMISES[name], body)
    site.refused(site.sign(request), 400, "InvalidRequest", "BadDigest", "InvalidArgument")


NUMBERS = ["0", "-1", "10001", "", "x", "1.0", "9" * 5000, "%C2%B2", "1%20", "%2B1"]


@pytest.mark.parametrize("number", argvalues=NUMBERS, ids=[number[:8] or "empty" for number in NUMBERS])
def test_h91_part_number(site: Site, number: str) -> None:
    for headers in ((), (("x-amz-copy-source", f"/{GROUND}/keep/small"),)):
        query = f"partNumber={number}&uploadId={site.upload}"
        request = Request("PUT", path_of(GROUND, "keep/upload"), query, headers, b"" if headers else b"evil")
        site.refused(site.sign(request), 400, "InvalidArgument")


def test_h91_no_part_number(site: Site) -> None:
    request = Request("PUT", path_of(GROUND, "keep/upload"), f"uploadId={site.upload}", body=b"evil")
    site.refused(site.sign(request), 400, "InvalidArgument")


def test_h91_a_part_over_5_gib(site: Site) -> None:
    """Refused by what the head says, before any byte is read."""
    for target in (
        Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=2&uploadId={site.upload}"),
        put(GROUND, "evil", b""),
    ):
        request = site.sign(target, payload="UNSIGNED-PAYLOAD")
        for length in (5 * 1024**3 + 1, 2**62, 2**63 - 1):
            with site.connect() as connection:
                connection.send(Request(**{**vars(request), "length": length}).head(site.host))
                assert connection.answer().code == "EntityTooLarge"


def test_h92_copy_onto_itself(site: Site) -> None:
    for source in (f"/{GROUND}/keep/small", f"{GROUND}/keep%2Fsmall", f"{GROUND}%2Fkeep%2Fsmall"):
        for fields in ({}, {"x_amz_metadata_directive": "COPY"}, {"x_amz_tagging_directive": "COPY"}):
            request = put(GROUND, "keep/small", b"", x_amz_copy_source=source, **fields)
            site.refused(site.sign(request), 400, "InvalidRequest")


RANGES = {
    "bytes=0-11": (400, 416),
    "bytes=11-11": (400, 416),
    "bytes=5-99999999999999": (400, 416),
    "bytes=18446744073709551616-18446744073709551617": (400,),
    "bytes=5-2": (400,),
    "bytes=-5": (400,),
    "bytes=5-": (400,),
    "bytes=": (400,),
    "bytes=0-1,2-3": (400,),
    "bytes=a-b": (400,),
    "bytes 0-1": (400,),
    "0-1": (400,),
    "": (400,),
    "bytes=" + "9" * 5000 + "-" + "9" * 5000: (400,),
}


@pytest.mark.parametrize("value", argvalues=list(RANGES), ids=[value[:20] or "empty" for value in RANGES])
def test_h92_copy_source_range(site: Site, value: str) -> None:
    fields = (("x-amz-copy-source", f"/{GROUND}/keep/small"), ("x-amz-copy-source-range", value))
    request = Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=1&uploadId={site.upload}", fields)
    answer = site.ask(site.sign(request))
    assert answer.status in RANGES[value], answer
    assert answer.code in ("InvalidArgument", "InvalidRange")


def test_h92_directives_that_are_none(site: Site) -> None:
    for name in ("x-amz-metadata-directive", "x-amz-tagging-directive"):
        request = put(GROUND, "evil", b"", x_amz_copy_source=f"/{GROUND}/keep/small").having((name, "EVIL"))
        site.refused(site.sign(request), 400, "InvalidArgument")


AIMS = [
    "http://169.254.169.254/latest/meta-data/",
    "http://localhost:1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:1/",
]
SUBRESOURCES = ["notification", "replication", "logging", "website", "inventory&id=x", "analytics&id=x", "metrics&id=x"]


@pytest.mark.parametrize("query", SUBRESOURCES)
def test_h93_no_destination_is_taken(site: Site, query: str) -> None:
    for aim in AIMS:
        body = xml("Configuration", f"<Destination><Bucket>{aim}</Bucket></Destination><Topic>{aim}</Topic>")
        answer = site.ask(site.sign(Request("PUT", path_of(GROUND), query, (content_md5(body),), body)))
        assert (answer.status, answer.code) in (
            (400, "MalformedXML"),
            (400, "InvalidArgument"),
            (501, "NotImplemented"),
        )


@pytest.mark.parametrize("aim", AIMS)
def test_h93_no_aim_is_taken_where_one_belongs(site: Site, aim: str) -> None:
    told = f"<TopicConfiguration><Topic>{aim}</Topic><Event>s3:ObjectCreated:*</Event></TopicConfiguration>"
    kept = f"<LoggingEnabled><TargetBucket>{aim}</TargetBucket><TargetPrefix/></LoggingEnabled>"
    for query, body, code in (
        ("notification", xml("NotificationConfiguration", told), "InvalidArgument"),
        ("logging", xml("BucketLoggingStatus", kept), "InvalidTargetBucketForLogging"),
    ):
        request = Request("PUT", path_of(GROUND), query, (content_md5(body),), body)
        site.refused(site.sign(request), 400, code)


POLICIES = {
    "1 MB": b'{"Version":"2012-10-17","Statement":[{"Sid":"' + b"x" * MIB + b'"}]}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "stars": b'{"Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:*","Resource":"' + b"*a" * 5000 + b'"}]}',
    "everybody": b'{"Statement":[{"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"}]}',
    "no JSON": b"\xff{",
}


@pytest.mark.parametrize("name", **cases(POLICIES))
def test_h94_no_policy_is_taken(site: Site, name: str) -> None:
    request = Request("PUT", path_of(GROUND), "policy", (content_md5(POLICIES[name]),), POLICIES[name])
    assert site.ask(site.sign(request)).code in ("MalformedPolicy", "AccessDenied", "MaxMessageLengthExceeded")
    site.refused(site.sign(Request("GET", path_of(GROUND), "policy")), 404, "NoSuchBucketPolicy")
    site.refused(Request("GET", path_of(GROUND, "keep/small")), 403, "AccessDenied")
    assert site.get(GROUND, "keep/small") == SMALL
