"""Forms are taken apart the same way however their bytes come, and nothing of a file is held."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import pytest

from sluice_s3.app.s3.errors import IncompleteBody, MalformedPOSTRequest
from sluice_s3.app.s3.objects.upload_form import UploadForm
from sluice_s3.app.s3.request_body import READ_BYTES, RequestBody
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from tests.support.environment import sized

TYPE = "multipart/form-data; boundary=BB"
FILE = b"\r\n--B\r\n--BB \r\n-\r\r\n--BA" + bytes(range(256))
HEAD = (
    b'preamble\r\n--BB\r\nContent-Disposition: form-data; name="Key"\r\n\r\ndir/${filename}\r\n'
    b'--BB\r\ncontent-type: text/plain\r\nCONTENT-DISPOSITION: form-data; name="empty"; filename="f"\r\n\r\n\r\n'
    b'--BB\r\nContent-Disposition: form-data; name="file"; filename="a/\xc3\xa4"\r\n\r\n'
).removeprefix(b"preamble\r\n")


def form_of(*pieces: bytes, whole: bool = True) -> UploadForm:
    """A form whose body comes in these pieces."""
    coming = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) or not whole}
        for number, piece in enumerate(pieces, 1)
    ]

    async def receive() -> MutableMapping[str, Any]:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    return UploadForm(TYPE, receive)


async def file_of(form: UploadForm) -> bytes:
    await form.read_fields()
    found, more = b"", True
    while more:
        message = await form.receive_file()
        found, more = found + message["body"], message["more_body"]
    return found


@pytest.mark.parametrize("step", [1, 2, 3, 7, 50, 1000])
async def test_however_its_bytes_come(step: int) -> None:
    # a line that begins with the boundary is no data (RFC 2046 §5.1.1), so that the file must have none
    file = FILE.replace(b"--BB ", b"--B ")
    body = HEAD + file + b"\r\n--BB--\r\nepilogue"
    form = form_of(*(body[at : at + step] for at in range(0, len(body), step)))
    assert await file_of(form) == file
    assert form.fields == {"key": "dir/ä", "empty": ""}


@pytest.mark.parametrize("behind", [b"a b\r\n\r\n", b"--BB--", b"a: " + b"b" * 5000, b"\r\nvalue\r\n--BB  c"])
async def test_what_comes_behind_the_file_is_ignored(behind: bytes) -> None:
    body = HEAD + b"file\r\n--BB\r\n" + behind
    for at in range(len(HEAD), len(body) + 1):
        assert await file_of(form_of(body[:at], body[at:])) == b"file", at


async def test_a_client_that_goes_away() -> None:
    with pytest.raises(IncompleteBody):
        await form_of(HEAD[:40], whole=False).read_fields()
    form = form_of(HEAD + b"half", whole=False)
    await form.read_fields()
    assert (await form.receive_file())["body"] == b"half"
    with pytest.raises(IncompleteBody):
        await form.receive_file()
    form = form_of(HEAD + b"half")
    await form.read_fields()
    await form.receive_file()
    with pytest.raises(MalformedPOSTRequest):
        await form.receive_file()


async def test_a_large_file_is_never_held() -> None:
    size = sized(32, 512) * 1024 * 1024
    sent = 0

    async def receive() -> MutableMapping[str, Any]:
        nonlocal sent
        body = HEAD if not sent else bytes(64 * 1024)
        sent += len(body)
        if sent >= size:
            return {"type": "http.request", "body": body + b"\r\n--BB--", "more_body": False}
        return {"type": "http.request", "body": body, "more_body": True}

    form = UploadForm(TYPE, receive)
    await form.read_fields()
    request = S3Request()
    request.headers = {"transfer-encoding": "chunked"}
    request.receive = form.receive_file
    request.memory = memory = BodyMemoryBudget(1 << 30)
    body = RequestBody(request)
    most = 0
    while piece := await body.read():
        most = max(most, memory.used_bytes, len(piece))
        body.digest(piece)
    body.verify()
    body.close()
    assert body.size == sent - len(HEAD)
    assert most <= 2 * READ_BYTES
    assert memory.used_bytes == 0
