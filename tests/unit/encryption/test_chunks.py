"""Bodies in chunks: what was sealed opens, in any range, and nothing else does."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.encryption.chunked_aead import (
    CHUNK,
    ENCRYPTED_CHUNK_BYTES,
    TAG,
    ChunkDecryptor,
    ChunkEncryptor,
    chunk_range,
    ciphertext_size,
)
from sluice_s3.app.errors import DataDamaged

KEY = bytes(range(32))
SIZES = st.one_of(
    st.integers(1, 3 * CHUNK + 5),
    st.sampled_from([1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1, 3 * CHUNK]),
)


def body_of(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def seal(body: bytes, *, pieces: list[int] | None = None, before: bytes = b"") -> bytes:
    sealer, made, start = ChunkEncryptor(AESGCM(KEY)), bytearray(), 0
    for size in pieces or []:
        made += sealer.seal([body[start : start + size]], before if not start else b"", last=False)
        start += size
    return bytes(made + sealer.seal([body[start:]], before if not start else b"", last=True))


def test_a_known_vector() -> None:
    """Made by AES-256-GCM itself with the nonces that the format says: 11 bytes of number, one for the last."""
    body = body_of(CHUNK + 3)
    cipher = AESGCM(KEY)
    expected = cipher.encrypt(bytes(12), body[:CHUNK], None) + cipher.encrypt(bytes(10) + b"\1\1", body[CHUNK:], None)
    assert seal(body) == expected
    assert seal(b"x").hex() == cipher.encrypt(bytes(11) + b"\1", b"x", None).hex()
    # and so it stays: whoever changes the format cannot read what was written
    assert seal(b"sluice").hex() == "66baca95279155d222f6a87a862a1f05bcdacf733107"


@given(SIZES, st.lists(st.integers(1, 2 * CHUNK), max_size=4))
def test_pieces_do_not_matter(size: int, pieces: list[int]) -> None:
    body = body_of(size)
    while sum(pieces) >= size:
        pieces = pieces[:-1]
    sealed = seal(body, pieces=pieces, before=b"head")
    assert sealed == b"head" + seal(body)
    assert len(sealed) == 4 + ciphertext_size(size)


@given(SIZES, st.data())
def test_any_range(size: int, data: st.DataObject) -> None:
    body = body_of(size)
    offset = data.draw(st.integers(0, size - 1))
    length = data.draw(st.integers(1, size - offset))
    first, begin, end = chunk_range(offset, length, size)
    opened = ChunkDecryptor(AESGCM(KEY), size).open(first, seal(body)[begin:end])
    skipped = offset - first * CHUNK
    assert opened[skipped : skipped + length] == body[offset : offset + length]
    assert len(opened) < length + 2 * CHUNK


def test_sizes() -> None:
    assert [ciphertext_size(size) for size in (0, 1, CHUNK, CHUNK + 1)] == [
        0,
        1 + TAG,
        ENCRYPTED_CHUNK_BYTES,
        ENCRYPTED_CHUNK_BYTES + 1 + TAG,
    ]


def damaged(sealed: bytes, size: int) -> None:
    with pytest.raises(DataDamaged):
        ChunkDecryptor(AESGCM(KEY), size).open(0, sealed)


@given(SIZES, st.data())
def test_a_changed_bit_is_found(size: int, data: st.DataObject) -> None:
    sealed = bytearray(seal(body_of(size)))
    at = data.draw(st.integers(0, len(sealed) - 1))
    sealed[at] ^= 1 << data.draw(st.integers(0, 7))
    damaged(bytes(sealed), size)


def test_chunks_that_are_cut_off_moved_repeated_or_of_another_body_are_found() -> None:
    size = 3 * CHUNK
    sealed = seal(body_of(size))
    one, two, three = (
        sealed[:ENCRYPTED_CHUNK_BYTES],
        sealed[ENCRYPTED_CHUNK_BYTES : 2 * ENCRYPTED_CHUNK_BYTES],
        sealed[2 * ENCRYPTED_CHUNK_BYTES :],
    )
    damaged(two + one + three, size)
    damaged(one + three + two, size)
    damaged(one + one + three, size)
    damaged(one + two + two, size)
    damaged(sealed[:-1], size)
    # cut off at a chunk's end, and the row's size with it: the last one is not the last one
    damaged(one + two, 2 * CHUNK)
    # and lengthened: the last one is not in the midst
    damaged(sealed + three, 4 * CHUNK)
    other = ChunkEncryptor(AESGCM(bytes(32))).seal([body_of(size)], last=True)
    damaged(one + bytes(other[ENCRYPTED_CHUNK_BYTES:]), size)
