"""What a body is taken for before a byte of it was read, and its ETag after all were."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Any

import awscrt.checksums
import pytest

from sluice_s3.app.s3.errors import BadDigest, InvalidRequest
from sluice_s3.app.s3.request_body import STREAMING_PAYLOADS, RequestBody
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.store.etags import crc64_etag
from sluice_s3.storage_drivers.base import Buffer

BODY = bytes(range(256)) * 300
CRC64 = base64.b64encode(awscrt.checksums.crc64nvme(BODY).to_bytes(8, "big")).decode()


@pytest.mark.parametrize("form", sorted(STREAMING_PAYLOADS))
def test_chunks_of_nobody_are_not_taken_for_the_object(form: str) -> None:
    """Without a signature, and without a content-encoding that tells, they would be stored with their framing."""
    request = S3Request()
    request.headers = {"x-amz-content-sha256": form, "x-amz-decoded-content-length": "5"}
    request.content_length, request.memory = 46, BodyMemoryBudget(1 << 24)
    request.receive = None  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="signed request"):
        RequestBody(request)


class _Counted:
    """A hash that notes how many bytes it took."""

    def __init__(self, hasher: Any, taken: list[int]) -> None:
        self._hasher = hasher
        self._taken = taken
        self.digest, self.hexdigest = hasher.digest, hasher.hexdigest

    def update(self, piece: Buffer) -> None:
        self._taken.append(len(piece))
        self._hasher.update(piece)


async def _etag(monkeypatch: pytest.MonkeyPatch, etag: str, **fields: str) -> tuple[str, int, int]:
    """The ETag of BODY by a request with these fields, and how many bytes MD5 and CRC64NVME took."""
    md5_bytes: list[int] = []
    crc64_bytes: list[int] = []
    new_md5, crc64 = hashlib.md5, awscrt.checksums.crc64nvme

    def counted_crc64(piece: Buffer, before: int = 0) -> int:
        crc64_bytes.append(len(piece))
        return crc64(piece, before)

    monkeypatch.setattr(hashlib, "md5", lambda *data, **_: _Counted(new_md5(*data), md5_bytes))
    monkeypatch.setattr(awscrt.checksums, "crc64nvme", counted_crc64)
    request = S3Request()
    request.set_headers(
        [name.replace("_", "-").encode() for name in fields], [value.encode() for value in fields.values()]
    )
    request.content_length, request.memory = len(BODY), BodyMemoryBudget(1 << 24)
    request.payload = "UNSIGNED-PAYLOAD"
    request.replace_body(_receive)
    body = RequestBody(request, etag=etag)
    await body.collect()
    return body.etag, sum(md5_bytes), sum(crc64_bytes)


async def _receive() -> dict[str, Any]:
    return {"type": "http.request", "body": BODY, "more_body": False}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"x_amz_checksum_crc64nvme": CRC64},
        {"x_amz_checksum_crc32": base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()},
    ],
    ids=["none", "same", "other"],
)
async def test_an_etag_by_crc64nvme_takes_the_bytes_once_and_no_md5(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, str]
) -> None:
    assert await _etag(monkeypatch, "crc64nvme", **fields) == (crc64_etag(CRC64, len(BODY)), 0, len(BODY))


async def test_an_etag_by_md5_takes_the_bytes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await _etag(monkeypatch, "md5") == (hashlib.md5(BODY).hexdigest(), len(BODY), len(BODY))
    crc32 = base64.b64encode(zlib.crc32(BODY).to_bytes(4, "big")).decode()
    assert (await _etag(monkeypatch, "md5", x_amz_checksum_crc32=crc32))[2] == 0


async def test_a_body_with_content_md5_is_checked_and_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.md5(BODY)
    given = base64.b64encode(digest.digest()).decode()
    assert await _etag(monkeypatch, "crc64nvme", content_md5=given) == (digest.hexdigest(), len(BODY), len(BODY))
    with pytest.raises(BadDigest):
        await _etag(monkeypatch, "crc64nvme", content_md5=base64.b64encode(bytes(16)).decode())
