"""The two kinds of ETags, and what clients take them for."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from sluice_s3.app.store import etags
from sluice_s3.app.store.etags import CRC64NVME, MD5, Crc64Hash, Md5Hash

CHECK = "ae8b14860a799888"
"""CRC64NVME of `123456789`, the check value of the catalogue of CRCs."""
EMPTY = f"{'0' * 26}-crc64nvme"
MULTIPART = re.compile(r"[0-9a-f]{32}-\d+")


def crc64(body: bytes) -> str:
    hashed = Crc64Hash()
    for first in range(0, len(body), 4):
        hashed.update(memoryview(body)[first : first + 4])
    return hashed.etag


def test_it_is_the_checksum_and_the_size() -> None:
    assert crc64(b"123456789") == f"{CHECK}0000000009-crc64nvme"
    assert crc64(b"") == EMPTY
    assert etags.crc64_etag(base64.b64encode(bytes.fromhex(CHECK)).decode(), 10 << 20) == f"{CHECK}0000a00000-crc64nvme"


@pytest.mark.parametrize("size", [0, 9, 10 << 20, 48 << 40, (1 << 64) - 1])
def test_no_client_takes_it_for_an_md5_or_for_a_number_of_parts(size: int) -> None:
    """SDKs and s3cmd look for a hyphen, rclone for 32 digits, others for a number after the hyphen."""
    etag = etags.crc64_etag(base64.b64encode(bytes(8)).decode(), size)
    assert "-" in etag
    assert not re.fullmatch("[0-9a-f]{32}", etag)
    assert not re.search(r"-\d", etag)
    assert len(etag) != 32
    assert not etags.is_multipart(etag)
    assert etags.kind_of(etag) == CRC64NVME


def test_kinds_by_their_form() -> None:
    md5 = hashlib.md5(b"body").hexdigest()
    assert etags.kind_of(md5) == MD5
    others = ["", f"{md5}-1", md5.upper(), md5[:-1], f"{CHECK}-crc64nvme", f"{CHECK}000000000g-crc64nvme", EMPTY + "-2"]
    assert {etags.kind_of(other) for other in others} == {""}
    assert isinstance(etags.hash_to_check(md5), Md5Hash)
    assert isinstance(etags.hash_to_check(EMPTY), Crc64Hash)
    assert etags.hash_to_check(f"{md5}-1") is None


def test_the_etag_of_parts_with_md5s_is_that_of_aws() -> None:
    parts = [hashlib.md5(body) for body in (b"one", b"two")]
    whole = hashlib.md5(b"".join(part.digest() for part in parts)).hexdigest()
    assert etags.multipart_etag([part.hexdigest() for part in parts]) == f"{whole}-2"


def test_the_etag_of_other_parts_has_their_number_and_the_form_of_no_md5() -> None:
    md5 = hashlib.md5(b"one").hexdigest()
    found = [etags.multipart_etag(parts) for parts in ([EMPTY], [EMPTY, md5], [md5, EMPTY], [EMPTY, EMPTY])]
    assert [etag.rpartition("-")[2] for etag in found] == ["1", "2", "2", "2"]
    assert len(set(found)) == 4
    for etag in found:
        assert not MULTIPART.fullmatch(etag)
        assert etags.is_multipart(etag)
    assert not etags.is_multipart(md5)
    assert not etags.is_multipart("")
