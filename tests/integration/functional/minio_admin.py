"""Callers of MinIO's admin API for tests, who sign and encrypt as `mc` does."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any
from urllib.parse import urlencode, urlsplit

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sluice_s3.app.encryption.admin_bodies import FRAGMENT, decrypt
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.raw_http import Answer, Client, Request
from tests.support.signing import Key, Way, sign_full

ROOT = Key(ACCESS_KEY, SECRET_KEY)


def sealed(secret: str, document: Any) -> bytes:
    """A body as clients in FIPS mode encrypt it: Argon2id would cost a tenth of a second for each."""
    text, salt, nonce = json.dumps(document).encode(), os.urandom(32), os.urandom(8)
    assert len(text) <= FRAGMENT
    cipher = AESGCM(hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, 8192, 32))
    bound = b"\x80" + cipher.encrypt(nonce + bytes(4), b"", None)
    return salt + b"\x02" + nonce + cipher.encrypt(nonce + b"\1\0\0\0", text, bound)


class Admin:
    """A caller of the API who signs as `mc` does, with the region ""."""

    def __init__(self, gateway: Gateway, key: Key = ROOT) -> None:
        self.host = urlsplit(gateway.endpoint).netloc
        self.key = key

    def send(self, method: str, path: str, body: bytes = b"", region: str = "", **query: str) -> Answer:
        """Send a call; `path` is that after /minio/admin/v3/."""
        request = Request(method, f"/minio/admin/v3/{path}", urlencode(query), body=body)
        signed = sign_full(request, self.key, Way(self.host, region=region)).request
        return self._sent(signed)

    def _sent(self, request: Request) -> Answer:
        with Client(f"http://{self.host}") as client:
            return client.ask(request)

    def unsigned(self, method: str, path: str) -> Answer:
        return self._sent(Request(method, path))

    def put(self, path: str, document: Any, method: str = "PUT", **query: str) -> Answer:
        """Send an encrypted document."""
        return self.send(method, path, sealed(self.key.secret, document), **query)

    def got(self, path: str, **query: str) -> Any:
        """The document of an encrypted answer."""
        answer = self.send("GET", path, **query)
        assert answer.status == 200, answer.body
        return json.loads(decrypt(self.key.secret, answer.body))

    def read(self, path: str, **query: str) -> Any:
        """The document of an answer that is not encrypted."""
        answer = self.send("GET", path, **query)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


def refused(answer: Answer, status: int, code: str) -> str:
    """The message of a refusal."""
    assert (answer.status, answer.code) == (status, code), answer.body
    return answer.all("Message")[0]
