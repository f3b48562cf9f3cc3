"""Bodies of MinIO's admin API, beside those that madmin-go 3.0.96 made."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.encryption.admin_bodies import FRAGMENT, HEAD, TAG, Undecipherable, decrypt, encrypt

SECRET = "rootsecret123"
LARGE = Path(__file__).with_name("admin_body_large.bin").read_bytes()
"""1100 times the 16 hex digits, of two fragments."""
AES = (
    "018bb4556f1442b9a5d0dde6ee2f52d572098e981bd761a3ca0c18874c93ecf900e6e30205ee7f65068fcfd9b59527e6571d"
    "75e6e6debe306a1a63f291930671c5760eefed7e4fd3ad35750d1e0362772c8039e5178b17e2949895e5f0e662d4e87bae09"
    "6058e5"
)
EMPTY = (
    "36082a3cf95646574c4ba3f1560548d75a93fba32c1dc609779ac87e1cdf7b5f0066418a367349041168fe567de84e2027d11c7c97c8c35d21"
)
CHACHA = (
    "0707070707070707070707070707070707070707070707070707070707070707010909090909090909feaf79d967e44d419a"
    "902c9e7cf4a25742940f0277e5"
)
RECORDED = {
    "AES": (bytes.fromhex(AES), b'{"secretKey":"alicesecret","status":"enabled"}'),
    "empty": (bytes.fromhex(EMPTY), b""),
    "ChaCha20": (bytes.fromhex(CHACHA), b"chacha"),
    "two fragments": (LARGE, b"0123456789abcdef" * 1100),
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_madmin_encrypted_opens(name: str) -> None:
    body, text = RECORDED[name]
    assert decrypt(SECRET, body) == text


@pytest.mark.parametrize("size", [0, 1, FRAGMENT, FRAGMENT + 1, 2 * FRAGMENT])
def test_what_is_encrypted_opens_and_has_the_size_of_madmins(size: int) -> None:
    body = encrypt("ключ", b"x" * size)
    assert decrypt("ключ", body) == b"x" * size
    assert len(body) == HEAD + size + TAG * max(1, -(-size // FRAGMENT))


def test_a_body_is_encrypted_differently_each_time() -> None:
    assert encrypt(SECRET, b"x") != encrypt(SECRET, b"x")


def _damaged() -> dict[str, bytes]:
    body, _ = RECORDED["AES"]
    first, second = LARGE[HEAD : HEAD + FRAGMENT + TAG], LARGE[HEAD + FRAGMENT + TAG :]
    return {
        "nothing": b"",
        "only a head": body[:HEAD],
        "cut off": body[:-1],
        "longer": body + b"x",
        "a bit": body[:-1] + bytes([body[-1] ^ 1]),
        "unknown scheme": body[:32] + b"\x03" + body[33:],
        "another scheme": body[:32] + b"\x01" + body[33:],
        "without its last fragment": LARGE[:HEAD] + first,
        "in another order": LARGE[:HEAD] + second + first,
    }


@pytest.mark.parametrize("name", _damaged())
def test_what_is_damaged_does_not_open(name: str) -> None:
    with pytest.raises(Undecipherable):
        decrypt(SECRET, _damaged()[name])


def test_another_secret_opens_nothing() -> None:
    with pytest.raises(Undecipherable):
        decrypt("rootsecret124", RECORDED["AES"][0])
