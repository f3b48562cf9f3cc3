"""What a body is taken for, before a byte of it was read."""

from __future__ import annotations

import pytest

from sluice_s3.app.s3.errors import InvalidRequest
from sluice_s3.app.s3.request_body import STREAMING_PAYLOADS, RequestBody
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget


@pytest.mark.parametrize("form", sorted(STREAMING_PAYLOADS))
def test_chunks_of_nobody_are_not_taken_for_the_object(form: str) -> None:
    """Without a signature, and without a content-encoding that tells, they would be stored with their framing."""
    request = S3Request()
    request.headers = {"x-amz-content-sha256": form, "x-amz-decoded-content-length": "5"}
    request.content_length, request.memory = 46, BodyMemoryBudget(1 << 24)
    request.receive = None  # type: ignore[assignment]
    with pytest.raises(InvalidRequest, match="signed request"):
        RequestBody(request)
