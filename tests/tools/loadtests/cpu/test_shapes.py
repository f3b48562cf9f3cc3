"""The shapes of clients: boto3's are what boto3 sends, and a gateway takes all of them, over HTTP and over TLS."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.common.tls import create_certificate
from sluice_s3.loadtests.cpu.client import Request
from sluice_s3.loadtests.cpu.shape_requests import Body, shaped
from sluice_s3.loadtests.cpu.shapes import OPERATIONS, SHAPES

ACCESS_KEY, SECRET_KEY = "AKIDEXAMPLE", "secret"
BODY = Body(b"0123456789abcdef" * 256)
LARGE = Body(bytes(range(256)) * (5 << 12))
BOTO3: dict[str, Callable[[Any], Any]] = {
    "PUT": lambda s3: s3.put_object(Bucket="b", Key="d/k", Body=bytes(BODY.data)),
    "GET": lambda s3: s3.get_object(Bucket="b", Key="d/k"),
    "HEAD": lambda s3: s3.head_object(Bucket="b", Key="d/k"),
    "LIST": lambda s3: s3.list_objects_v2(Bucket="b"),
    "DELETE-OBJECTS": lambda s3: s3.delete_objects(Bucket="b", Delete={"Objects": [{"Key": "d/k"}]}),
    "PART": lambda s3: s3.upload_part(Bucket="b", Key="d/k", UploadId="u", PartNumber=7, Body=bytes(LARGE.data)),
}


@dataclass
class Recorder:
    """A server that keeps one request and answers it with an empty document."""

    listener: socket.socket
    tls: ssl.SSLContext | None
    head: str = ""
    body: bytes = field(default=b"", repr=False)

    def serve(self) -> None:
        plain, _ = self.listener.accept()
        connection = plain if self.tls is None else self.tls.wrap_socket(plain, server_side=True)
        with connection, connection.makefile("rb") as stream:
            lines = list(iter(stream.readline, b"\r\n"))
            self.head = b"".join(lines).decode()
            fields = fields_of(self.head)
            if "expect" in fields:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if "transfer-encoding" in fields:
                while not self.body.endswith(b"\r\n0\r\n\r\n"):
                    self.body += stream.readline()
            else:
                self.body = stream.read(int(fields.get("content-length", "0")))
            document = b"<Result/>"
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(document))
            if not self.head.startswith("HEAD"):
                connection.sendall(document)


def fields_of(head: str) -> dict[str, str]:
    """Fields by lower-case name."""
    pairs = (line.partition(": ") for line in head.split("\r\n")[1:] if line)
    return {name.lower(): value for name, _, value in pairs}


@contextmanager
def recording(tls: ssl.SSLContext | None) -> Iterator[Recorder]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        recorder = Recorder(listener, tls)
        thread = threading.Thread(target=recorder.serve)
        thread.start()
        yield recorder
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_boto3_sends_its_shape(tmp_path: Path, operation: str, tls: bool) -> None:
    certificate = create_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    with recording(context if tls else None) as recorder:
        host = f"127.0.0.1:{recorder.listener.getsockname()[1]}"
        s3 = boto3.client(
            "s3",
            endpoint_url=f"{'https' if tls else 'http'}://{host}",
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            verify=str(certificate.chain) if tls else None,
            config=Config(retries={"total_max_attempts": 1}),
        )
        BOTO3[operation](s3)
    signer = Signer(host, ACCESS_KEY, SECRET_KEY)
    path, body = "/b/d/k" if operation != "LIST" else "/b", LARGE if operation == "PART" else BODY
    request = shaped(signer, SHAPES["boto3"], operation, path, body, tls=tls, part=(7, "u"))
    assert_same(recorder, request)


def assert_same(recorder: Recorder, request: Request) -> None:
    """The same target, fields in the same order and case, the same signed and the same body."""
    own = request.head.decode()
    assert own.partition("\r\n")[0] == recorder.head.partition("\r\n")[0]
    assert re.findall(r"(?m)^([^:\r\n]+):", own) == re.findall(r"(?m)^([^:\r\n]+):", recorder.head)
    assert bytes(request.body or b"") == recorder.body
    sent, recorded = fields_of(own), fields_of(recorder.head)
    for fields in (sent, recorded):
        fields["authorization"] = re.sub(r"\d{8}/|Signature=\w+", "", fields["authorization"])
        for changing in ("user-agent", "amz-sdk-invocation-id", "amz-sdk-request", "x-amz-date"):
            fields.pop(changing, None)
    assert sent == recorded
    assert request.waits == ("expect" in recorded)


def test_an_operation_that_a_client_lacks() -> None:
    with pytest.raises(ValueError, match="no DELETE-OBJECTS"):
        shaped(Signer("h", ACCESS_KEY, SECRET_KEY), SHAPES["rclone"], "DELETE-OBJECTS", "/b/k")
