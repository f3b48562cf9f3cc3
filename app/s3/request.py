"""One S3 request, parsed once: everything later (signature, policy, index, files) uses these values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Set
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

    method: str
    raw_path: bytes
    raw_query: bytes
    header_list: list[tuple[bytes, bytes]]
    headers: dict[str, str]
    amazon: list[str]
    """The names of `headers` that start with `x-amz-`, as they came."""
    repeated: Set[str] = frozenset()
    query: dict[str, str]
    bucket: str | None = None
    key: str | None = None
    virtual_host = False
    """The bucket came from the Host header."""
    scheme: str
    client: str
    request_id: str
    receive: Receive
    memory: Memory
    body: Any = None
    """The `app.s3.body.Body` that the operation made of it, or None."""
    content_length: int | None = None
    account_id: str | None = None
    """The authenticated account; None while the request is anonymous."""
    access_key: str | None = None
    display_name = ""
    secret = ""
    """The key of the signature, for signed chunks; never logged."""
    signature: Any = None
    """The verified `app.s3.signing.Claim`, or None."""
    payload = "UNSIGNED-PAYLOAD"
    """What `x-amz-content-sha256` promises of the body, or `UNSIGNED-PAYLOAD`."""
    operation = "Unknown"
    timings: dict[str, float]
    """Seconds by phase: auth, index, open, write, sync, commit, read."""
    bucket_row: Any = None
    """The bucket that the operation is on, authorised."""

    def take_headers(self, header_list: list[tuple[bytes, bytes]]) -> None:
        """Fill `headers` and `repeated` from names in lower case and values, in the order of the wire."""
        self.header_list = header_list
        headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in header_list}
        if len(headers) != len(header_list):
            values: dict[str, list[str]] = {}
            for name, value in header_list:
                values.setdefault(str(name, "latin-1"), []).append(str(value, "latin-1"))
            headers = {name: ", ".join(several) for name, several in values.items()}
            self.repeated = {name for name, several in values.items() if len(several) > 1}
        self.headers = headers
        self.amazon = [name for name in headers if name[:6] == "x-amz-"]
