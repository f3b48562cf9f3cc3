"""Data keys that are wrapped, by the ring and by customers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.encryption.chunked_aead import AESGCM
from sluice_s3.app.encryption.envelope import CUSTOMER, HEAD, HEADER, RING, keyed_etag, unwrap, wrap
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import DataDamaged, KeyUnavailable

CIPHER = AESGCM(bytes(32))


class Keys:
    """One key."""

    def unwrapping(self, kind: int, key: bytes) -> AESGCM:
        if (kind, key) != (RING, b"k" * 16):
            raise KeyUnavailable()
        return CIPHER


def test_what_is_wrapped_unwraps() -> None:
    made = wrap(RING, b"k" * 16, CIPHER)
    assert len(made.header) == HEADER
    assert made.header[:8] == b"SlSE\x01\x01\x10\x00"
    nonce = bytes(12)
    assert unwrap(made.header, Keys()).decrypt(nonce, made.cipher.encrypt(nonce, b"x", None), None) == b"x"


def test_each_data_key_is_another() -> None:
    headers = {wrap(RING, b"k" * 16, CIPHER).header for _ in range(100)}
    assert len({header[HEAD.size :] for header in headers}) == 100


@given(st.integers(0, HEADER * 8 - 1))
def test_a_changed_header_does_not_open(bit: int) -> None:
    header = bytearray(wrap(RING, b"k" * 16, CIPHER).header)
    header[bit // 8] ^= 1 << bit % 8
    with pytest.raises((DataDamaged, KeyUnavailable)):
        unwrap(bytes(header), Keys())


def test_what_is_no_header() -> None:
    for header in (b"", bytes(HEADER), wrap(RING, b"k" * 16, CIPHER).header[:-1]):
        with pytest.raises(DataDamaged):
            unwrap(header, Keys())


def test_a_customers_key() -> None:
    key, other = CustomerKey(bytes(32)), CustomerKey(bytes(31) + b"\1")
    made = key.envelope()
    unwrap(made.header, CustomerKey(bytes(32)))
    with pytest.raises(DataDamaged):
        unwrap(made.header, other)
    with pytest.raises(DataDamaged):
        unwrap(wrap(RING, b"k" * 16, CIPHER).header, key)
    assert (key == CustomerKey(bytes(32)), key == other, key == "x") == (True, False, False)
    assert bytes(32).hex() not in repr(key)


def test_what_is_kept_of_a_customers_key_tells_a_wrong_one_only() -> None:
    key, other = CustomerKey(bytes(32)), CustomerKey(bytes(31) + b"\1")
    salt, check = key.new_check()
    assert (key.fits(salt, check), other.fits(salt, check)) == (True, False)
    assert key.new_check() != (salt, check), "salted"
    assert bytes(32).hex() not in salt + check


def test_etags_tell_nothing_of_the_bytes() -> None:
    md5 = "0" * 32
    found = {keyed_etag(secret, md5) for secret in (b"a", b"b")} | {md5}
    assert len(found) == 3
    assert {len(etag) for etag in found} == {32}
    assert CustomerKey(bytes(32)).etag(md5) == CustomerKey(bytes(32)).etag(md5)
    crc64 = "0" * 20 + "-crc64nvme"
    keyed = CustomerKey(bytes(32)).etag(crc64)
    assert re.fullmatch("[0-9a-f]{20}-crc64nvme", keyed), "clients must not take it for an MD5 either"
    assert keyed not in (crc64, CustomerKey(bytes(31) + b"1").etag(crc64))


def test_kinds() -> None:
    assert (RING, CUSTOMER) == (1, 2), "they are in what was written"
