"""Checksums: known answers, combination against the whole, and what requests may say (reliability test 89)."""

from __future__ import annotations

import base64
import hashlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire import checksums
from sluice_s3.app.s3.wire.checksums import ALGORITHMS, ExpectedChecksum
from tests.unit.s3.signing.signed_requests import make

CHECK = b"123456789"
KNOWN = {
    "CRC32": (0xCBF43926).to_bytes(4, "big"),
    "CRC32C": (0xE3069283).to_bytes(4, "big"),
    "CRC64NVME": (0xAE8B14860A799888).to_bytes(8, "big"),
    "MD5": bytes.fromhex("25f9e794323b453885f5181f1b624d0b"),
    "SHA1": hashlib.sha1(CHECK).digest(),
    "SHA256": hashlib.sha256(CHECK).digest(),
    "SHA512": hashlib.sha512(CHECK).digest(),
    "XXHASH128": bytes.fromhex("33119477ede5dcd5e9716427681d5860"),
    "XXHASH3": bytes.fromhex("72dcb18b67a17dff"),
    "XXHASH64": (0x8CB841DB40E6AE83).to_bytes(8, "big"),
}
CRC = base64.b64encode(KNOWN["CRC32"]).decode()


def digest(algorithm: str, data: bytes) -> str:
    hasher = ALGORITHMS[algorithm].new()
    hasher.update(data)
    return hasher.digest_base64()


def of(**headers: str) -> ExpectedChecksum:
    return checksums.expected_checksum(make("PUT", headers={n.replace("_", "-"): v for n, v in headers.items()}))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_known_answers(algorithm: str) -> None:
    assert base64.b64decode(digest(algorithm, CHECK)) == KNOWN[algorithm]
    assert ALGORITHMS[algorithm].size == len(KNOWN[algorithm])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(data=st.binary(max_size=100), cut=st.integers(0, 100))
def test_data_in_pieces_of_any_kind(algorithm: str, data: bytes, cut: int) -> None:
    hasher = ALGORITHMS[algorithm].new()
    hasher.update(memoryview(data)[:cut])
    hasher.update(bytearray(data[cut:]))
    assert hasher.digest_base64() == digest(algorithm, data)


def test_what_others_wrote_of_the_newer_ones() -> None:
    """Values of other programs: of aws-sdk-go-v2's issue on xxHash, and xxHash's of nothing."""
    assert digest("XXHASH64", b"hello world") == "RatnNLIeaWg="
    assert base64.b64decode(digest("XXHASH3", b"")).hex() == "2d06800538d394c2"
    assert base64.b64decode(digest("XXHASH128", b"")).hex() == "99aa06d3014798d86001c324468d497f"


def test_a_checksum_of_what_was_hashed_already() -> None:
    md5 = hashlib.md5(CHECK)
    hasher = checksums.SharedMd5(md5)
    hasher.update(b"more")
    assert base64.b64decode(hasher.digest_base64()) == KNOWN["MD5"]


def test_crc32_is_zlibs() -> None:
    assert base64.b64decode(digest("CRC32", b"abc")) == zlib.crc32(b"abc").to_bytes(4, "big")


@pytest.mark.parametrize("algorithm", ["CRC32", "CRC32C", "CRC64NVME"])
@given(parts=st.lists(st.binary(max_size=50), min_size=1, max_size=6))
def test_combined_parts_are_the_whole(algorithm: str, parts: list[bytes]) -> None:
    named = [(digest(algorithm, part), len(part)) for part in parts]
    assert checksums.combine_full_object(algorithm, named) == digest(algorithm, b"".join(parts))


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "CRC64NVME"])
def test_composite(algorithm: str) -> None:
    first, second = digest(algorithm, b"a"), digest(algorithm, b"b")
    both = base64.b64decode(first) + base64.b64decode(second)
    assert checksums.composite(algorithm, [first, second]) == digest(algorithm, both) + "-2"


def test_types() -> None:
    assert {name: algorithm.types for name, algorithm in ALGORITHMS.items()} == {
        "CRC32": ("COMPOSITE", "FULL_OBJECT"),
        "CRC32C": ("COMPOSITE", "FULL_OBJECT"),
        "CRC64NVME": ("FULL_OBJECT",),
        **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64"), ("COMPOSITE",)),
    }


def test_requests_that_say_nothing() -> None:
    assert of() == checksums.NO_CHECKSUM
    assert of(x_amz_checksum_mode="ENABLED") == checksums.NO_CHECKSUM


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_values(algorithm: str) -> None:
    value = base64.b64encode(KNOWN[algorithm]).decode()
    header = ALGORITHMS[algorithm].header
    assert of(**{header: value}) == ExpectedChecksum(algorithm, value)
    assert of(**{header: value}, x_amz_sdk_checksum_algorithm=algorithm) == ExpectedChecksum(algorithm, value)
    assert of(**{header: value}, x_amz_sdk_checksum_algorithm=algorithm.lower()).value == value
    assert of(x_amz_trailer=header, x_amz_sdk_checksum_algorithm=algorithm) == ExpectedChecksum(algorithm, "", True)


@pytest.mark.parametrize(
    "value",
    ["", "x", "AAAA", "AAAAAAA=", "AAAAAAAA", "AAAAAB==", " AAAAAA==", "AAAAAA== ", "AAAAAA=", "AAAAAA", "AAAAAA==-1",
     "AAAA\nAA==", "AAA-AA==", "\xe9AAAAA==", "AAAAAA==, AAAAAA=="],
)  # fmt: skip
def test_h89_values_that_cannot_be_one(value: str) -> None:
    with pytest.raises(errors.InvalidRequest, match="Value for x-amz-checksum-crc32 header is invalid"):
        of(x_amz_checksum_crc32=value)


def test_h89_two_checksums() -> None:
    sha1 = base64.b64encode(KNOWN["SHA1"]).decode()
    with pytest.raises(errors.InvalidRequest, match="Expecting a single"):
        of(x_amz_checksum_crc32=CRC, x_amz_checksum_sha1=sha1)
    with pytest.raises(errors.InvalidRequest, match="Expecting a single"):
        of(x_amz_checksum_crc32=CRC, x_amz_trailer="x-amz-checksum-sha1")
    with pytest.raises(errors.InvalidRequest, match="Expecting a single"):
        of(x_amz_checksum_crc32=CRC, x_amz_trailer="x-amz-checksum-crc32")
    request = make("PUT", headers=[("x-amz-checksum-crc32", CRC), ("x-amz-checksum-crc32", CRC)])
    with pytest.raises(errors.InvalidRequest):
        checksums.expected_checksum(request)


def test_h89_another_algorithm_than_the_value() -> None:
    with pytest.raises(errors.InvalidRequest, match="x-amz-sdk-checksum-algorithm header is invalid"):
        of(x_amz_checksum_crc32=CRC, x_amz_sdk_checksum_algorithm="SHA1")
    with pytest.raises(errors.InvalidRequest, match="x-amz-sdk-checksum-algorithm header is invalid"):
        of(x_amz_trailer="x-amz-checksum-crc32", x_amz_sdk_checksum_algorithm="CRC32C")
    with pytest.raises(errors.InvalidRequest, match="no corresponding"):
        of(x_amz_sdk_checksum_algorithm="CRC32")


@pytest.mark.parametrize(
    "headers",
    [{"x_amz_checksum_foo": CRC}, {"x_amz_trailer": "x-amz-checksum-foo"}, {"x_amz_trailer": ""},
     {"x_amz_trailer": "x-amz-meta-a"}, {"x_amz_trailer": "x-amz-checksum-crc32, x-amz-checksum-sha1"},
     {"x_amz_checksum_crc32": CRC, "x_amz_sdk_checksum_algorithm": "FOO"},
     {"x_amz_checksum_crc32": CRC, "x_amz_checksum_type": "HALF"}],
)  # fmt: skip
def test_unknown_algorithms(headers: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidRequest):
        of(**headers)


def test_the_value_of_a_trailer() -> None:
    expected = ExpectedChecksum("CRC32", "", True)
    assert expected.final({"x-amz-checksum-crc32": CRC}) == CRC
    with pytest.raises(errors.MalformedTrailerError):
        expected.final({})
    with pytest.raises(errors.InvalidRequest, match="trailing header"):
        expected.final({"x-amz-checksum-crc32": "x"})
    assert ExpectedChecksum("CRC32", CRC).final({}) == CRC
    assert checksums.NO_CHECKSUM.final({}) == ""


def complete(**headers: str) -> ExpectedChecksum:
    request = make("POST", headers={n.replace("_", "-"): v for n, v in headers.items()})
    return checksums.expected_checksum(request, complete=True)


def test_complete_takes_composite_values() -> None:
    assert complete(x_amz_checksum_crc32=CRC + "-3").value == CRC + "-3"
    assert complete(x_amz_checksum_crc32=CRC, x_amz_checksum_type="FULL_OBJECT") == ExpectedChecksum(
        "CRC32", CRC, False, "FULL_OBJECT"
    )
    for suffix in ("-", "-0", "-x", "--1", "-\xb2", "-999999"):
        with pytest.raises(errors.InvalidRequest):
            complete(x_amz_checksum_crc32=CRC + suffix)


def chosen(**headers: str) -> tuple[str, str]:
    return checksums.requested_algorithm(make("POST", headers={n.replace("_", "-"): v for n, v in headers.items()}))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_choice_of_an_upload(algorithm: str) -> None:
    types = ALGORITHMS[algorithm].types
    assert chosen(x_amz_checksum_algorithm=algorithm) == (algorithm, types[0])
    for kind in ("COMPOSITE", "FULL_OBJECT"):
        if kind in types:
            assert chosen(x_amz_checksum_algorithm=algorithm, x_amz_checksum_type=kind) == (algorithm, kind)
            continue
        with pytest.raises(errors.InvalidRequest, match="cannot be used"):
            chosen(x_amz_checksum_algorithm=algorithm, x_amz_checksum_type=kind)


def test_no_choice_and_bad_ones() -> None:
    assert chosen() == ("", "")
    for headers in ({"x_amz_checksum_algorithm": "FOO"}, {"x_amz_checksum_type": "COMPOSITE"},
                    {"x_amz_checksum_algorithm": "CRC32", "x_amz_checksum_type": "X"}):  # fmt: skip
        with pytest.raises(errors.InvalidRequest):
            chosen(**headers)


def test_content_md5() -> None:
    digest = hashlib.md5(b"x").digest()
    assert checksums.content_md5(make("PUT")) is None
    assert checksums.content_md5(make("PUT", headers={"content-md5": base64.b64encode(digest).decode()})) == digest


@pytest.mark.parametrize("value", ["", "AWS HAHAHA", "YWJyYWNhZGFicmE=", "x" * 24, "\xe9", digest("SHA1", b"")])
def test_h89_content_md5_malformed(value: str) -> None:
    with pytest.raises(errors.InvalidDigest):
        checksums.content_md5(make("PUT", headers={"content-md5": value}))


def test_mismatch_is_bad_digest() -> None:
    assert checksums.mismatch("CRC32").code == "BadDigest"
