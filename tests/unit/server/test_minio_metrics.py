"""The tokens of `mc admin prometheus generate`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest

from sluice_s3.app.server.processes.minio_metrics import is_valid, unverified_subject

SECRET = "of-the-first-account"
CLAIMS = {"exp": 4_000_000_000, "iss": "prometheus", "sub": "somebody"}


def encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def token(claims: object = CLAIMS, algorithm: str = "HS512", secret: str = SECRET) -> str:
    signed = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": algorithm, "typ": "JWT"}, claims))
    return f"{signed}.{encoded(hmac.digest(secret.encode(), signed.encode(), hashlib.sha512))}"


def now() -> float:
    return 3_999_999_999.0


def test_a_token_of_minio() -> None:
    assert is_valid(token(), SECRET, now)
    assert unverified_subject(token()) == "somebody"


@pytest.mark.parametrize(
    "wrong",
    [
        token(secret="another"),
        token(algorithm="none"),
        token(algorithm="HS256"),
        token({**CLAIMS, "exp": 3_999_999_999}),
        token({**CLAIMS, "exp": "4000000000"}),
        token({"sub": "somebody"}),
        token([]),
        token()[:-1],
        token().rpartition(".")[0] + ".",
        "." + token(),
        "a.b",
        "..",
        "",
    ],
)
def test_what_is_refused(wrong: str) -> None:
    assert not is_valid(wrong, SECRET, now)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "a",
        "a.b.c",
        "a.é.c",
        token([]),
        token({"sub": 1}),
        token({"sub": "\ud800"}),
        token({"sub": ""}),
        f"a.{encoded(b'[' * 100_000)}",
    ],
)
def test_what_names_nobody(wrong: str) -> None:
    assert unverified_subject(wrong) is None
