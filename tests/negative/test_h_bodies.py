"""Group H: documents and checksums."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable
from hashlib import md5, sha256

import pytest

from tests.negative.site import GROUND, PART_ETAG, SMALL, Site, content_md5, path_of, put
from tests.negative.wire import Request, cases, xml

MIB = 1 << 20
NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def delete(body: bytes) -> Request:
    """A DeleteObjects with this document."""
    return Request("POST", path_of(GROUND), "delete", (content_md5(body),), body)


def complete(site: Site, body: bytes, upload: str = "") -> Request:
    return Request("POST", path_of(GROUND, "keep/upload"), f"uploadId={upload or site.upload}", body=body)


def create(body: bytes) -> Request:
    return Request("PUT", "/evil-bucket", body=body)


def documents(site: Site) -> list[tuple[str, str, Callable[[bytes], Request]]]:
    """Where a document is read: its root, what is right in it, and the request around it."""
    part = f"<Part><PartNumber>1</PartNumber><ETag>{PART_ETAG}</ETag></Part>"
    return [
        ("Delete", "<Object><Key>keep/small</Key></Object>", delete),
        ("CompleteMultipartUpload", part, lambda body: complete(site, body)),
        ("CreateBucketConfiguration", "<LocationConstraint>us-east-1</LocationConstraint>", create),
    ]


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "]>"
)
BOMBS = {
    "billion laughs": LAUGHS + "<{root}>&j;{inner}</{root}>",
    "quadratic": '<!DOCTYPE x [<!ENTITY a "' + "a" * 50_000 + '">]><{root}>' + "&a;" * 5000 + "{inner}</{root}>",
    "external entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><{root}>&e;{inner}</{root}>',
    "external entity by HTTP": '<!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:1/">]><{root}>&e;{inner}</{root}>',
    "parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]><{root}>{inner}</{root}>',
    "external DTD": '<!DOCTYPE x SYSTEM "http://127.0.0.1:1/x.dtd"><{root}>{inner}</{root}>',
    "a DTD that does nothing": "<!DOCTYPE x><{root}>{inner}</{root}>",
    "a DTD behind a comment": "<!-- --><!DOCTYPE x [ ]><{root}>{inner}</{root}>",
    "a DTD in UTF-8 with BOM": "\ufeff<!DOCTYPE x [ ]><{root}>{inner}</{root}>",
    "entity with a name of 1 MB": '<!DOCTYPE x [<!ENTITY ' + "n" * MIB + ' "">]><{root}>{inner}</{root}>',
    "entity that is not declared": "<{root}>&e;{inner}</{root}>",
    "XInclude": '<{root} xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="/etc/passwd"/>{inner}</{root}>',
    "attribute of 1 MB": '<{root} a="' + "a" * MIB + '"><x/>{inner}</{root}>',
}


@pytest.mark.parametrize("name", **cases(BOMBS))
def test_h86_entities_and_dtds(site: Site, name: str) -> None:
    for root, inner, request in documents(site):
        body = BOMBS[name].replace("{root}", root).replace("{inner}", inner).encode()
        site.refused(site.sign(request(body)), 400, "MalformedXML")


ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp037", "utf-7"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_h86_a_dtd_in_another_encoding(site: Site, encoding: str) -> None:
    for root, inner, request in documents(site):
        text = f'<?xml version="1.0" encoding="{encoding}"?><!DOCTYPE x [<!ENTITY e "e">]><{root}>{inner}</{root}>'
        site.refused(site.sign(request(text.encode(encoding))), 400, "MalformedXML")


def test_h87_size(site: Site) -> None:
    for root, inner, request in documents(site):
        body = xml(root, inner + " " * 10 * MIB)
        site.refused(site.sign(request(body)), 400, "MaxMessageLengthExceeded")
        # also when the length is not said beforehand
        unsaid = site.sign(request(body))
        size = f"{len(body):x}\r\n".encode()
        chunked = unsaid.having(("transfer-encoding", "chunked"), body=size + body + b"\r\n0\r\n\r\n", length=None)
        site.refused(chunked, 400, "MaxMessageLengthExceeded")


def test_h87_depth(site: Site) -> None:
    for root, inner, request in documents(site):
        for depth in (40, 100_000, 250_000):
            body = xml(root, "<a>" * depth + inner + "</a>" * depth)
            assert len(body) < 2 * MIB
            site.refused(site.sign(request(body)), 400, "MalformedXML")


def test_h87_elements(site: Site) -> None:
    for root, inner, request in documents(site):
        site.refused(site.sign(request(xml(root, "<a/>" * 400_000 + inner))), 400, "MalformedXML")
        site.refused(site.sign(request(xml(root, inner + "<a " + " ".join(f'x{n}=""' for n in range(100_000)) + "/>"))),
                     400, "MalformedXML")  # fmt: skip


def test_h87_too_many_keys(site: Site) -> None:
    entries = "".join(f"<Object><Key>k{number}</Key></Object>" for number in range(1000))
    for more in ("<Object><Key>keep/small</Key></Object>", "<Object><Key>keep/small</Key></Object>" * 9000):
        site.refused(site.sign(delete(xml("Delete", more + entries))), 400, "MalformedXML")
    assert len(site.ok(delete(xml("Delete", entries))).all("Deleted")) == 1000


def test_h87_too_many_parts(site: Site) -> None:
    parts = "".join(f"<Part><PartNumber>{n}</PartNumber><ETag>{PART_ETAG}</ETag></Part>" for n in range(1, 10_002))
    site.refused(site.sign(complete(site, xml("CompleteMultipartUpload", parts))), 400, "MalformedXML")


def test_h87_no_keys_or_parts(site: Site) -> None:
    site.refused(site.sign(delete(xml("Delete", ""))), 400, "MalformedXML")
    site.refused(site.sign(delete(xml("Delete", "<Quiet>true</Quiet>"))), 400, "MalformedXML")
    site.refused(site.sign(complete(site, xml("CompleteMultipartUpload", ""))), 400, "MalformedXML")
    site.refused(site.sign(delete(b"")), 400, "MalformedXML", "MissingRequestBodyError")
    site.refused(site.sign(complete(site, b"")), 400, "MalformedXML", "InvalidRequest")


SHAPES = {
    "another root": "<Evil {ns}>{inner}</Evil>",
    "root in lower case": "<{lower} {ns}>{inner}</{lower}>",
    "another namespace": '<{root} xmlns="urn:evil">{inner}</{root}>',
    "children of another namespace": '<{root} {ns}><e:x xmlns:e="urn:evil"/>{inner}</{root}>',
    "unknown element": "<{root} {ns}><Evil>1</Evil>{inner}</{root}>",
    "root in a root": "<x><{root} {ns}>{inner}</{root}></x>",
    "two roots": "<{root}>{inner}</{root}><{root}>{inner}</{root}>",
    "text behind": "<{root}>{inner}</{root}>evil",
    "not closed": "<{root}>{inner}",
    "closed wrongly": "<{root}>{inner}</evil>",
    "undeclared prefix": "<e:{root}>{inner}</e:{root}>",
    "text before": "evil<{root}>{inner}</{root}>",
    "NUL": "<{root}>\0{inner}</{root}>",
    "control character": "<{root}>\x01{inner}</{root}>",
    "reference to NUL": "<{root}>&#0;{inner}</{root}>",
    "reference to a surrogate": "<{root}>&#xD800;{inner}</{root}>",
    "reference over U+10FFFF": "<{root}>&#x110000;{inner}</{root}>",
    "attribute twice": '<{root} a="1" a="2">{inner}</{root}>',
    "JSON": '{"Objects":[{"Key":"keep/small"}]}',
    "only a declaration": '<?xml version="1.0"?>',
    "encoding that is none": '<?xml version="1.0" encoding="evil"?><{root}>{inner}</{root}>',
    "encoding of several bytes": '<?xml version="1.0" encoding="shift_jis"?><{root}>{inner}</{root}>',
    "open CDATA": "<{root}><![CDATA[{inner}</{root}>",
    "Python format": "<{0.__class__}/>",
}


def shaped(name: str, root: str, inner: str) -> bytes:
    text = SHAPES[name].replace("{root}", root).replace("{lower}", root.lower()).replace("{ns}", NAMESPACE)
    return text.replace("{inner}", inner).encode()


@pytest.mark.parametrize("name", **cases(SHAPES))
def test_h88_shape(site: Site, name: str) -> None:
    for root, inner, request in documents(site):
        site.refused(site.sign(request(shaped(name, root, inner))), 400, "MalformedXML")


@pytest.mark.parametrize("encoding", ENCODINGS[:4])
def test_h88_utf_16(site: Site, encoding: str) -> None:
    for root, inner, request in documents(site):
        site.refused(site.sign(request(f"<{root}>{inner}</{root}>".encode(encoding))), 400, "MalformedXML")


def test_h88_bytes_that_are_not_utf_8(site: Site) -> None:
    for root, _, request in documents(site):
        for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
            site.refused(site.sign(request(f"<{root}>".encode() + bad + f"</{root}>".encode())), 400, "MalformedXML")


ENTRIES = {
    "no key": "<Object/>",
    "empty key": "<Object><Key/></Object>",
    "key twice": "<Object><Key>keep/small</Key><Key>x</Key></Object>",
    "element in a key": "<Object><Key>keep/<b>small</b></Key></Object>",
    "element behind a key's text": "<Object><Key>keep/small<b/></Key></Object>",
    "unknown element": "<Object><Key>keep/small</Key><Evil>1</Evil></Object>",
    "bad size": "<Object><Key>keep/small</Key><Size>x</Size></Object>",
    "huge size": f"<Object><Key>keep/small</Key><Size>{'9' * 5000}</Size></Object>",
    "negative size": "<Object><Key>keep/small</Key><Size>-1</Size></Object>",
    "bad time": "<Object><Key>keep/small</Key><LastModifiedTime>x</LastModifiedTime></Object>",
    "Quiet twice": "<Quiet>true</Quiet><Quiet>false</Quiet><Object><Key>keep/small</Key></Object>",
}


@pytest.mark.parametrize("name", **cases(ENTRIES))
def test_h88_entries_of_delete_objects(site: Site, name: str) -> None:
    site.refused(site.sign(delete(xml("Delete", ENTRIES[name]))), 400, "MalformedXML")


def test_h88_bom_declaration_and_namespaces_that_clients_send(site: Site) -> None:
    for form in (
        "\ufeff<Delete>{}</Delete>",
        '<?xml version="1.0" encoding="UTF-8"?>\n<Delete>{}</Delete>',
        '<Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{}</Delete>',
        '<Delete xmlns="https://s3.amazonaws.com/doc/2006-03-01">{}</Delete>',
        '<Delete xmlns="http://doc.s3.amazonaws.com/2006-03-01">{}</Delete>',
        "<Delete><!-- comment -->\n {} \n</Delete>",
    ):
        body = form.format("<Object><Key>no/<![CDATA[such]]>&#x2F;<!-- -->key</Key></Object>").encode()
        assert site.ok(delete(body)).all("Key") == ["no/such/key"]


def test_h88_keys_that_xml_cannot_hold_list_with_encoding(site: Site) -> None:
    bucket = site.fresh()
    keys = [f"a{chr(number)}" for number in (0, 1, 8, 11, 12, 14, 31, 0xFFFE, 0xFFFF)]
    for key in keys:
        site.ok(put(bucket, key))
    assert site.keys(bucket) == sorted(keys, key=str.encode)
    for query in ("encoding-type=url&versions", "encoding-type=url", "delimiter=%01&encoding-type=url&list-type=2"):
        site.ok(Request("GET", path_of(bucket), query)).tree()


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
    "wrong checksum": (part(1).replace("</Part>", "<ChecksumCRC64NVME>AAAAAAAAAAA=</ChecksumCRC64NVME></Part>"), ("InvalidPart",)),
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
    request = complete(site, xml("CompleteMultipartUpload", part(1))).having(*PROMISES[name])
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
    for target in (Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=2&uploadId={site.upload}"), put(GROUND, "evil", b"")):
        request = site.sign(target, payload="UNSIGNED-PAYLOAD")
        for length in (5 * 1024**3 + 1, 2**62, 2**63 - 1):
            with site.connect() as connection:
                connection.send(Request(**{**vars(request), "length": length}).head(site.host))
                assert connection.answer().code == "EntityTooLarge"


def test_h92_copy_onto_itself(site: Site) -> None:
    for source in (f"/{GROUND}/keep/small", f"{GROUND}/keep%2Fsmall", f"{GROUND}%2Fkeep%2Fsmall"):
        for fields in ({}, {"x_amz_metadata_directive": "COPY"}, {"x_amz_storage_class": "STANDARD"}):
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


AIMS = ["http://169.254.169.254/latest/meta-data/", "http://localhost:1/", "file:///etc/passwd", "gopher://127.0.0.1:1/"]
SUBRESOURCES = ["notification", "replication", "logging", "website", "inventory&id=x", "analytics&id=x", "metrics&id=x"]


@pytest.mark.parametrize("query", SUBRESOURCES)
def test_h93_no_destination_is_taken(site: Site, query: str) -> None:
    for aim in AIMS:
        body = xml("Configuration", f"<Destination><Bucket>{aim}</Bucket></Destination><Topic>{aim}</Topic>")
        site.refused(site.sign(Request("PUT", path_of(GROUND), query, (content_md5(body),), body)), 501, "NotImplemented")


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
    site.refused(site.sign(request), 501, "NotImplemented")
    site.refused(site.sign(Request("GET", path_of(GROUND), "policy")), 404, "NoSuchBucketPolicy")
    site.refused(Request("GET", path_of(GROUND, "keep/small")), 403, "AccessDenied")
    assert site.get(GROUND, "keep/small") == SMALL
