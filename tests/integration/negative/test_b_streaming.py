"""Group B: aws-chunked bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import GROUND, Site, delete_many, path_of, put
from tests.integration.negative.streams import (
    GOOD,
    PIECES,
    WHOLE,
    Change,
    crc,
    refused,
    seed,
    targets,
    trailing_body,
    unsigned,
    wire,
    wire_data,
    with_signed_chunks,
)
from tests.support.raw_http import Request
from tests.support.signing import (
    SIGNED_CHUNKS,
    SIGNED_CHUNKS_TRAILER,
    UNSIGNED_CHUNKS_TRAILER,
    Chunk,
    chunk_signature,
    chunks_of,
    plain_chunks,
)


def test_b21_the_forms_are_right_to_begin_with(site: Site) -> None:
    bucket = site.fresh()
    site.ask(with_signed_chunks(site, put(bucket, "signed", b""), lambda chunks: chunks))
    signed = seed(
        site, put(bucket, "trailer", b""), SIGNED_CHUNKS_TRAILER, len(WHOLE), x_amz_trailer="x-amz-checksum-crc32"
    )
    site.ask(replace(signed.request, body=trailing_body(signed, f"x-amz-checksum-crc32:{crc(WHOLE)}")))
    assert unsigned(site, put(bucket, "unsigned", b"")).status == 200
    for key in ("signed", "trailer", "unsigned"):
        assert site.get(bucket, key) == WHOLE


@pytest.mark.parametrize("at", range(5))
def test_b21_wrong_chunk_signature(site: Site, at: int) -> None:
    def change(chunks: list[Chunk]) -> list[Chunk]:
        chunks[at] = replace(chunks[at], extension=";chunk-signature=" + "0" * 64)
        return chunks

    refused(site, change, 403, "SignatureDoesNotMatch")


@pytest.mark.parametrize("at", range(4))
def test_b21_changed_chunk_data(site: Site, at: int) -> None:
    def change(chunks: list[Chunk]) -> list[Chunk]:
        chunks[at] = replace(chunks[at], data=b"!" + chunks[at].data[1:])
        return chunks

    refused(site, change, 403, "SignatureDoesNotMatch")


ORDERS: dict[str, Change] = {
    "swapped": lambda chunks: [chunks[1], chunks[0], *chunks[2:]],
    "dropped": lambda chunks: [chunks[0], *chunks[2:]],
    "first dropped": lambda chunks: chunks[1:],
    "doubled": lambda chunks: [chunks[0], chunks[0], *chunks[1:]],
    "moved to the end": lambda chunks: [*chunks[1:4], chunks[0], chunks[4]],
}


@pytest.mark.parametrize("name", **cases(ORDERS))
def test_b22_order_of_chunks(site: Site, name: str) -> None:
    size = len(wire_data(ORDERS[name]))
    refused(site, ORDERS[name], 403, "SignatureDoesNotMatch", "InvalidChunkSizeError", size=size)


def test_b23_no_final_chunk(site: Site) -> None:
    refused(site, lambda chunks: chunks[:-1], 400, "IncompleteBody")


def test_b23_the_body_is_cut_anywhere(site: Site) -> None:
    whole = with_signed_chunks(site, put(GROUND, "evil", b""), lambda chunks: chunks).body
    for size in (0, 1, 50, 90, 70_000, 70_087, 70_088, len(whole) - 90, len(whole) - 88, len(whole) - 3):
        request = with_signed_chunks(site, put(GROUND, "evil", b""), lambda chunks: chunks)
        site.refused(replace(request, body=request.body[:size]), 400, "IncompleteBody")


def test_b24_wrong_seed_signature(site: Site) -> None:
    """The chunks hang together, but on a signature that the request does not have."""
    for target in targets(site):
        signed = seed(site, target, SIGNED_CHUNKS, len(WHOLE))
        false = signed._replace(signature="0" * 64)
        value = signed.request.header("authorization")
        assert value is not None
        request = signed.request.changed("authorization", value.replace(signed.signature, false.signature))
        request = replace(request, body=wire(chunks_of(false, PIECES)))
        site.refused(request, 403, "SignatureDoesNotMatch")
        # and with the right one in the head
        site.refused(replace(signed.request, body=request.body), 403, "SignatureDoesNotMatch")


LENGTHS: dict[str, tuple[int | str | None, int, str]] = {
    "smaller": (len(WHOLE) - 1, 400, "IncompleteBody"),
    "larger": (len(WHOLE) + 1, 400, "IncompleteBody"),
    "zero": (0, 400, "IncompleteBody"),
    "absent": (None, 411, "MissingContentLength"),
    "empty": ("", 400, "InvalidArgument"),
    "negative": (-1, 400, "InvalidArgument"),
    "plus": (f"+{len(WHOLE)}", 400, "InvalidArgument"),
    "hexadecimal": (hex(len(WHOLE)), 400, "InvalidArgument"),
    "5 GiB and 1": (5 * 1024**3 + 1, 400, "EntityTooLarge"),
    "2**63": (2**63, 400, "EntityTooLarge"),
    "2**64 + size": (2**64 + len(WHOLE), 400, "InvalidArgument"),
    "not ASCII": ("\xb2", 400, "InvalidArgument"),
}


@pytest.mark.parametrize("name", **cases(LENGTHS))
def test_b25_decoded_length(site: Site, name: str) -> None:
    size, status, code = LENGTHS[name]
    refused(site, lambda chunks: chunks, status, code, size=size)
    answer = unsigned(site, put(GROUND, "evil", b""), size=size)
    assert (answer.status, answer.code) == (status, code)


SIZES: dict[str, Callable[[str], str]] = {
    "no hex": lambda size: "zz",
    "0x": lambda size: "0x" + size,
    "plus": lambda size: "+" + size,
    "minus": lambda size: "-" + size,
    "space before": lambda size: " " + size,
    "space behind": lambda size: size + " ",
    "17 digits": lambda size: size.zfill(17),
    "2**64 and more": lambda size: "1" + size.zfill(16),
    "16 digits of f": lambda size: "f" * 16,
    "empty": lambda size: "",
    "underscore": lambda size: f"{size[0]}_{size[1:]}",
    "not ASCII": lambda size: "\u0663",
    "a line of 2 KB": lambda size: "0" * 2048 + size,
}


@pytest.mark.parametrize("name", **cases(SIZES))
@pytest.mark.parametrize("at", [0, 2])
def test_b26_size_of_a_chunk(site: Site, name: str, at: int) -> None:
    def change(chunks: list[Chunk]) -> list[Chunk]:
        chunks[at] = replace(chunks[at], size=SIZES[name](chunks[at].size))
        return chunks

    refused(site, change, 400, "IncompleteBody")
    answer = unsigned(site, put(GROUND, "evil", b""), change=change)
    assert (answer.status, answer.code) == (400, "IncompleteBody")


EXTENSIONS: dict[str, Callable[[str], str]] = {
    "none": lambda extension: "",
    "another": lambda extension: ";ext=1",
    "two": lambda extension: extension + ";ext=1",
    "signature twice": lambda extension: extension + extension,
    "space": lambda extension: extension.replace(";", "; "),
    "quoted": lambda extension: extension.replace("=", '="') + '"',
    "name in upper case": lambda extension: extension.replace("chunk-", "CHUNK-"),
    "no semicolon": lambda extension: extension[1:],
}


@pytest.mark.parametrize("name", **cases(EXTENSIONS))
def test_b26_extension_of_a_chunk(site: Site, name: str) -> None:
    def change(chunks: list[Chunk]) -> list[Chunk]:
        chunks[1] = replace(chunks[1], extension=EXTENSIONS[name](chunks[1].extension))
        return chunks

    codes = ("SignatureDoesNotMatch", "IncompleteBody")
    for target in targets(site):
        answer = site.ask(with_signed_chunks(site, target, change))
        assert answer.status in (400, 403)
        assert answer.code in codes


def test_b26_a_line_end_that_is_none(site: Site) -> None:
    for bad in (b"\n", b"\r", b"\n\r", b"", b"xx"):
        signed = seed(site, put(GROUND, "evil", b""), SIGNED_CHUNKS, len(WHOLE))
        body = wire(chunks_of(signed, PIECES))
        at = body.index(b"\r\n")
        request = replace(signed.request, body=body[:at] + bad + body[at + 2 :])
        site.refused(request, 400, "IncompleteBody")
        end = at + 2 + len(PIECES[0])
        site.refused(replace(signed.request, body=body[:end] + bad + body[end + 2 :]), 400, "IncompleteBody")


def test_b27_a_small_chunk_that_is_not_the_last(site: Site) -> None:
    for target in targets(site):
        for pieces in ([b"x" * 8191, b"y" * 9000], [b"x", b"y"], [b"x" * 9000, b"y", b"z" * 9000]):
            signed = seed(site, target, SIGNED_CHUNKS, sum(map(len, pieces)))
            request = replace(signed.request, body=wire(chunks_of(signed, pieces)))
            site.refused(request, 403, "InvalidChunkSizeError")


TRAILERS: dict[str, tuple[str | None, tuple[str, ...], str | None, int, tuple[str, ...]]] = {
    # what x-amz-trailer announces, the trailers, their signature; status and codes
    "not announced": (None, (GOOD,), None, 400, ("MalformedTrailerError",)),
    "announced and missing": ("x-amz-checksum-crc32", (), None, 400, ("MalformedTrailerError",)),
    "another than announced": ("x-amz-checksum-crc32c", (GOOD,), None, 400, ("MalformedTrailerError",)),
    "one more": ("x-amz-checksum-crc32", (GOOD, "x-amz-meta-evil:1"), None, 400, ("MalformedTrailerError",)),
    "twice": ("x-amz-checksum-crc32", (GOOD, GOOD), None, 400, ("MalformedTrailerError",)),
    "no colon": ("x-amz-checksum-crc32", ("x-amz-checksum-crc32",), None, 400, ("MalformedTrailerError",)),
    "a line of 9 KB": ("x-amz-checksum-crc32", (GOOD + "A" * 9000,), None, 400, ("MalformedTrailerError",)),
    "wrong checksum": ("x-amz-checksum-crc32", ("x-amz-checksum-crc32:AAAAAA==",), None, 400, ("BadDigest",)),
    "no checksum": ("x-amz-checksum-crc32", ("x-amz-checksum-crc32:x",), None, 400, ("InvalidRequest",)),
    "wrong signature": ("x-amz-checksum-crc32", (GOOD,), "0" * 64, 403, ("SignatureDoesNotMatch",)),
    "no signature": ("x-amz-checksum-crc32", (GOOD,), "", 400, ("MalformedTrailerError", "IncompleteBody")),
    "announces what is no checksum": ("x-amz-meta-a", ("x-amz-meta-a:1",), None, 400, ("InvalidRequest",)),
}


@pytest.mark.parametrize("name", **cases(TRAILERS))
def test_b28_signed_trailers(site: Site, name: str) -> None:
    announced, trailers, sign, status, codes = TRAILERS[name]
    fields = {} if announced is None else {"x_amz_trailer": announced}
    for target in targets(site):
        signed = seed(site, target, SIGNED_CHUNKS_TRAILER, len(WHOLE), **fields)
        site.refused(replace(signed.request, body=trailing_body(signed, *trailers, sign=sign)), status, *codes)


@pytest.mark.parametrize("name", **cases([name for name in TRAILERS if "signature" not in name]))
def test_b28_unsigned_trailers(site: Site, name: str) -> None:
    announced, trailers, _, status, codes = TRAILERS[name]
    for target in targets(site):
        answer = unsigned(site, target, trailers, announced=announced)
        assert (answer.status, answer.code in codes) == (status, True), answer


def test_b28_a_signature_among_unsigned_trailers(site: Site) -> None:
    answer = unsigned(site, put(GROUND, "evil", b""), (GOOD, "x-amz-trailer-signature:" + "0" * 64))
    assert (answer.status, answer.code) == (400, "MalformedTrailerError")


def test_b28_a_header_and_a_trailer_with_a_checksum(site: Site) -> None:
    target = put(GROUND, "evil", b"", x_amz_checksum_crc32=crc(WHOLE))
    answer = unsigned(site, target)
    assert (answer.status, answer.code) == (400, "InvalidRequest")


def test_b29_unsigned_payload_trailer_with_a_bad_signature(site: Site) -> None:
    for target in targets(site):
        signed = seed(site, target, UNSIGNED_CHUNKS_TRAILER, len(WHOLE), x_amz_trailer="x-amz-checksum-crc32")
        body = wire(plain_chunks(PIECES), f"{GOOD}\r\n\r\n".encode())
        value = signed.request.header("authorization")
        assert value is not None
        for bad in (value.replace(signed.signature, "0" * 64), value.replace(signed.signature, "")):
            request = replace(signed.request.changed("authorization", bad), body=body)
            site.refused(request, 403, "SignatureDoesNotMatch")


def test_b30_unsigned_payload_trailer_without_a_signature(site: Site) -> None:
    for target in targets(site):
        signed = seed(site, target, UNSIGNED_CHUNKS_TRAILER, len(WHOLE), x_amz_trailer="x-amz-checksum-crc32")
        body = wire(plain_chunks(PIECES), f"{GOOD}\r\n\r\n".encode())
        site.refused(replace(signed.request.without("authorization"), body=body), 403, "AccessDenied")


@pytest.mark.parametrize("marker", [SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER, UNSIGNED_CHUNKS_TRAILER])
def test_b30_streams_with_a_presigned_url(site: Site, marker: str) -> None:
    for target in targets(site):
        fields = (("x-amz-content-sha256", marker), ("x-amz-decoded-content-length", str(len(WHOLE))))
        request = site.presign(target.having(*fields, body=wire(plain_chunks(PIECES))), payload=marker)
        site.refused(request, 400, "InvalidRequest")


@pytest.mark.parametrize("marker", [SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER, UNSIGNED_CHUNKS_TRAILER])
def test_b30_streams_where_no_object_is_put(site: Site, marker: str) -> None:
    """As a body that nobody checks they would let a document through."""
    delete = delete_many(GROUND, "keep/small")
    policy = Request("PUT", path_of(GROUND), "policy", body=b'{"Version":"2012-10-17","Statement":[]}')
    complete = Request("POST", path_of(GROUND, "keep/upload"), f"uploadId={site.upload}", body=delete.body)
    for request in (delete, policy, complete, Request("PUT", "/evil-bucket"), Request("DELETE", path_of(GROUND))):
        signed = seed(site, replace(request, body=b""), marker, len(request.body))
        body = wire(chunks_of(signed, [request.body]) if "HMAC" in marker else plain_chunks([request.body]))
        site.refused(replace(signed.request, body=body), 501, "NotImplemented")


def test_b31_aws_chunked_without_its_marker(site: Site) -> None:
    """It would be stored with its framing in it."""
    for target in targets(site):
        request = target.having(("content-encoding", "aws-chunked"), body=wire(plain_chunks(PIECES)))
        site.refused(site.sign(request, payload="UNSIGNED-PAYLOAD"), 400, "InvalidRequest")
        site.refused(site.presign(request), 400, "InvalidRequest")


def test_b31_a_body_whose_own_hash_is_signed_is_stored_as_it_is(site: Site) -> None:
    bucket = site.fresh()
    body = wire(plain_chunks(PIECES))
    site.ok(put(bucket, "k", body, content_encoding="aws-chunked,gzip"))
    answer = site.ok(Request("GET", path_of(bucket, "k")))
    assert (answer.body, answer.headers["content-encoding"]) == (body, "gzip")


def test_b31_a_marker_without_aws_chunked_is_decoded(site: Site) -> None:
    bucket = site.fresh()
    size = ("x-amz-decoded-content-length", str(len(WHOLE)))
    signed = site.signed(put(bucket, "k", b"").having(size), payload=SIGNED_CHUNKS)
    assert site.ask(replace(signed.request, body=wire(chunks_of(signed, PIECES)))).status == 200
    assert site.get(bucket, "k") == WHOLE


def test_b31_a_marker_on_a_plain_body(site: Site) -> None:
    for target in targets(site):
        for marker in (SIGNED_CHUNKS, SIGNED_CHUNKS_TRAILER, UNSIGNED_CHUNKS_TRAILER):
            signed = seed(site, target, marker, len(WHOLE))
            site.refused(replace(signed.request, body=WHOLE), 400, "IncompleteBody")


@pytest.mark.parametrize("more", [b"x", b"\r\n", b"0\r\n\r\n", b"4\r\nevil\r\n0\r\n\r\n", b"x" * 5000])
def test_b32_data_behind_the_final_chunk(site: Site, more: bytes) -> None:
    codes = ("InvalidRequest", "MalformedTrailerError", "IncompleteBody")
    for target in targets(site):
        signed = seed(site, target, SIGNED_CHUNKS, len(WHOLE))
        body = wire(chunks_of(signed, PIECES)) + more
        site.refused(replace(signed.request, body=body), 400, *codes)
        answer = unsigned(site, target, end=more)
        assert (answer.status, answer.code in codes) == (400, True), answer


def test_b32_a_second_final_chunk(site: Site) -> None:
    for target in targets(site):
        signed = seed(site, target, SIGNED_CHUNKS, len(WHOLE))
        chunks = chunks_of(signed, PIECES)
        last = chunks[-1].extension.rpartition("=")[2]
        again = replace(chunks[-1], extension=";chunk-signature=" + chunk_signature(signed, last, b""))
        codes = ("InvalidRequest", "MalformedTrailerError")
        site.refused(replace(signed.request, body=wire([*chunks, again])), 400, *codes)
