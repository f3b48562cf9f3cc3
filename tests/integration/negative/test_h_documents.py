"""Group H: documents."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.negative.checks import cases, xml
from tests.integration.negative.site import GROUND, PART_ETAG, Site, content_md5, path_of, put
from tests.support.raw_http import Request

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
    "entity with a name of 1 MB": "<!DOCTYPE x [<!ENTITY " + "n" * MIB + ' "">]><{root}>{inner}</{root}>',
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
