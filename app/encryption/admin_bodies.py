"""Encrypted bodies of MinIO's admin API: the key is derived from the secret key of the caller.

A body is a salt (32 bytes), the number of the scheme (1), a nonce (8), and fragments of 16 KiB, each sealed with a tag.
A fragment's nonce is that of the body and its number (4 bytes, little endian) from 1. Its additional data is one byte,
0x80 for the last fragment and else 0, and the tag of an empty text sealed under number 0. Sources: `encrypt.go` of
github.com/minio/madmin-go, and the format of github.com/secure-io/sio-go.
"""

from __future__ import annotations

import hashlib
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

SALT, NONCE, TAG, KEY = 32, 8, 16, 32
"""Bytes."""
HEAD = SALT + 1 + NONCE
FRAGMENT = 16 * 1024
ARGON2_AES, ARGON2_CHACHA, PBKDF2_AES = 0, 1, 2
"""Numbers of the schemes."""
ARGON2_KIB = 64 * 1024
ARGON2_LANES = 4
PBKDF2_ROUNDS = 8192
MORE, LAST = b"\x00", b"\x80"


class Undecipherable(ValueError):
    """The body is no such ciphertext, or was encrypted with another secret."""


def _cipher(scheme: int, secret: str, salt: bytes) -> AESGCM | ChaCha20Poly1305:
    password = secret.encode("utf-8")
    if scheme == PBKDF2_AES:
        return AESGCM(hashlib.pbkdf2_hmac("sha256", password, salt, PBKDF2_ROUNDS, KEY))
    if scheme not in (ARGON2_AES, ARGON2_CHACHA):
        raise Undecipherable("unknown scheme")
    key = Argon2id(salt=salt, length=KEY, iterations=1, lanes=ARGON2_LANES, memory_cost=ARGON2_KIB).derive(password)
    return AESGCM(key) if scheme == ARGON2_AES else ChaCha20Poly1305(key)


def _nonce(nonce: bytes, number: int) -> bytes:
    return nonce + number.to_bytes(4, "little")


def encrypt(secret: str, data: bytes) -> bytes:
    """Return a body encrypted for the holder of a secret key. Takes 0.1 s of CPU time and 64 MiB, in any thread."""
    salt, nonce = os.urandom(SALT), os.urandom(NONCE)
    cipher = _cipher(ARGON2_AES, secret, salt)
    bound = cipher.encrypt(_nonce(nonce, 0), b"", None)
    sealed = [salt, bytes([ARGON2_AES]), nonce]
    starts = range(0, len(data), FRAGMENT) or range(1)
    for number, start in enumerate(starts, 1):
        mark = LAST if number == len(starts) else MORE
        sealed.append(cipher.encrypt(_nonce(nonce, number), data[start : start + FRAGMENT], mark + bound))
    return b"".join(sealed)


def decrypt(secret: str, body: bytes) -> bytes:
    """Return the text of a body. Raises Undecipherable. Takes 0.1 s of CPU time and 64 MiB, in any thread."""
    if len(body) < HEAD + TAG:
        raise Undecipherable("too short")
    salt, scheme, nonce = body[:SALT], body[SALT], body[SALT + 1 : HEAD]
    cipher = _cipher(scheme, secret, salt)
    bound = cipher.encrypt(_nonce(nonce, 0), b"", None)
    starts = range(HEAD, len(body), FRAGMENT + TAG)
    opened = []
    try:
        for number, start in enumerate(starts, 1):
            mark = LAST if number == len(starts) else MORE
            fragment = body[start : start + FRAGMENT + TAG]
            opened.append(cipher.decrypt(_nonce(nonce, number), fragment, mark + bound))
    except InvalidTag:
        raise Undecipherable("another secret key, or damaged") from None
    return b"".join(opened)
