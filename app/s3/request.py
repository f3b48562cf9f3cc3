"""One S3 request, parsed once: everything later (signature, policy, index, files) uses these values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Memory(Protocol):
    """The budget of bytes that bodies may hold, shared by all requests."""

    @property
    def short(self) -> bool:
        """It is used up."""
        ...

    def take(self, size: int) -> None:
        """Count bytes that are held, within the budget or not."""
        ...

    async def acquire(self, size: int) -> None:
        """Wait for a share of the budget. Raises Overloaded when there is none for too long."""
        ...

    def release(self, size: int) -> None:
        """Give back what was taken or acquired."""
        ...


class S3Request:
    """The head of a request and the way to its body.

    `raw_path` and `raw_query` are the bytes of the request line. `headers` maps lower-case names to values decoded as
    latin-1; a field that came more than once has its values joined by ", " and its name in `repeated`. `query` maps
    decoded names to the first decoded value.
    """

    __slots__ = (
        "access_key",
        "account_id",
        "body",
        "bucket",
        "bucket_row",
        "client",
        "content_length",
        "display_name",
        "header_list",
        "headers",
        "key",
        "memory",
        "method",
        "operation",
        "payload",
        "query",
        "raw_path",
        "raw_query",
        "receive",
        "repeated",
        "request_id",
        "scheme",
        "secret",
        "signature",
        "timings",
        "virtual_host",
    )

    method: str
    raw_path: bytes
    raw_query: bytes
    header_list: list[tuple[bytes, bytes]]
    headers: dict[str, str]
    repeated: set[str]
    query: dict[str, str]
    bucket: str | None
    key: str | None
    virtual_host: bool
    """The bucket came from the Host header."""
    scheme: str
    client: str
    request_id: str
    receive: Receive
    memory: Memory
    body: Any
    """The `app.s3.body.Body` that the operation made of it, or None."""
    content_length: int | None
    account_id: str | None
    """The authenticated account; None while the request is anonymous."""
    access_key: str | None
    display_name: str
    secret: str
    """The key of the signature, for signed chunks; never logged."""
    signature: Any
    """The verified `app.s3.signing.Claim`, or None."""
    payload: str
    """What `x-amz-content-sha256` promises of the body, or `UNSIGNED-PAYLOAD`."""
    operation: str
    timings: dict[str, float]
    """Seconds by phase: auth, index, open, write, sync, commit, read."""
    bucket_row: Any
    """The bucket that the operation is on, authorised."""
