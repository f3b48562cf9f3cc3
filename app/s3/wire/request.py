"""One S3 request, parsed once: all later steps (signature, policy, index, files) use these values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence, Set
from itertools import repeat
from typing import Any, Protocol

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
REQUEST = "sluice.request"
"""Key of the scope under which an ASGI application finds the parsed request."""


class MemoryBudget(Protocol):
    """The budget of bytes that bodies may hold, shared by all requests."""

    @property
    def short(self) -> bool:
        """It is used up."""
        ...

    def take(self, size: int) -> None:
        """Count held bytes, within the budget or not."""
        ...

    async def acquire(self, size: int) -> None:
        """Wait for a share of the budget. Raises Overloaded when the wait is too long."""
        ...

    def release(self, size: int) -> None:
        """Return bytes that were taken or acquired."""
        ...


class HeaderNames:
    """The names of a head's fields in order, and what follows from names alone.

    A client sends the same names with every request, so that this is computed once: see `intern_header_names`.
    """

    __slots__ = ("amazon", "raw", "repeated", "text")

    def __init__(self, raw: tuple[bytes, ...]) -> None:
        self.raw = tuple([name.lower() for name in raw])
        """In lower case."""
        self.text = tuple([name.decode("latin-1") for name in self.raw])
        self.repeated = frozenset(name for name in self.text if self.text.count(name) > 1)
        self.amazon = tuple([name for name in dict.fromkeys(self.text) if name.startswith("x-amz-")])


_LATIN_1 = repeat("latin-1")
_MAX_INTERNED = 1024
_REMEMBERED_BYTES = 2048
_names: dict[tuple[bytes, ...], HeaderNames] = {}


def intern_header_names(raw: tuple[bytes, ...]) -> HeaderNames:
    """Return the parsed names. Caches a bounded number of heads of usual size."""
    header_names = _names.get(raw)
    if header_names is None:
        header_names = HeaderNames(raw)
        if sum(map(len, raw)) <= _REMEMBERED_BYTES:
            if len(_names) >= _MAX_INTERNED:
                _names.clear()
            _names[raw] = header_names
    return header_names


async def receive_nothing() -> dict[str, Any]:
    """Return the message of a client that sends no more."""
    return {"type": "http.disconnect"}


class S3Request:
    """One request: its head as the server parsed it, and what the steps of its response note.

    Handlers only read the head, the target and the caller. `raw_path` and `raw_query` are the bytes of the request
    line. `headers` maps lower-case names to values decoded as latin-1; the values of a repeated field are joined by
    ", ", and its name is in `repeated`. `query` maps decoded names to the first decoded value.
    """

    # the head
    method: str
    raw_path: bytes
    raw_query: bytes
    names: HeaderNames
    values: list[bytes]
    """As received, in the order of `names`."""
    headers: dict[str, str]
    repeated: Set[str]
    amazon: tuple[str, ...] = ()
    """The names of `headers` that start with `x-amz-`."""
    scheme: str
    client: str
    content_length: int | None = None
    website = False
    """It is to a website, by its Host or its port."""
    # the target
    request_id = ""
    query: dict[str, str]
    bucket: str | None = None
    key: str | None = None
    virtual_host = False
    """The bucket came from the Host header."""
    operation = "Unknown"
    bucket_row: Any = None
    """The bucket of the operation, authorized."""
    named_bucket: Any = None
    """The bucket of that name, where the request was refused before it was looked up; for CORS and access logs."""
    region = ""
    """The requested region, where there is no bucket."""
    # the caller
    account_id: str | None = None
    """The authenticated account; None while the request is anonymous."""
    principal: Any = None
    """The `app.access.principal.Principal` that acts for the account; None: the account itself, by its own key."""
    access_key: str | None = None
    display_name = ""
    secret = ""
    """The key of the signature, for signed chunks; never logged."""
    signature: Any = None
    """The verified `app.s3.auth.signatures.RequestSignature`, or None."""
    # the body
    payload = "UNSIGNED-PAYLOAD"
    """The announcement of `x-amz-content-sha256` for the body, or `UNSIGNED-PAYLOAD`."""
    receive: Receive = staticmethod(receive_nothing)
    """Returns the next message with its body."""
    whole_body: bytes | None = None
    """Its body, where the server had received all of it; else `receive` returns it."""
    memory: MemoryBudget
    body: Any = None
    """The `app.s3.request_body.RequestBody` that the operation reads it with, or None."""
    body_size: int | None = None
    """Bytes of that body, once its response is finished; None: it was not read, or its size is unknown."""
    is_document = False
    """The time limit of documents applies to its body at present."""
    # the permission
    work: Any = None
    """The remaining budget of its policies, an `app.access.policy.Work`; None: none was evaluated yet."""
    authorization_pending = False
    """Its permission is still open. It depends on the object's ACL, or on each object of the body."""
    pending_permissions: tuple[tuple[str, Any, Any], ...] = ()
    """Actions that depend on the object's ACL or tags. Each has its open verdict and condition keys."""
    charged = False
    """Its caller pays for it."""
    # what its headers or its document say of the new object or bucket, once parsed
    sse = False
    """Its headers contain encryption of its object."""
    appends = False
    """It is a PutObject that appends: see `app.s3.objects.append`."""
    tags: dict[str, str] | None = None
    """The tags in it for an object: see `app.s3.tagging.tags`."""
    lock: Any = None
    """The `app.index.object_lock.protection.Lock` in its document."""
    location: str | None = None
    """The LocationConstraint of its new bucket, empty for none."""
    bucket_tags: dict[str, str] | None = None
    """The tags of its new bucket."""
    # for the epilogue: headers, access log, metrics
    received = 0
    """Bytes of its body that arrived, with their framing; set at its end."""
    started: float
    """When its response began, by `time.perf_counter`."""
    responded = 0.0
    """When its response was finished; 0.0: never."""
    timings: dict[str, float]
    """Seconds by phase: auth, index, open, write, sync, commit, read."""
    error_code = ""
    """The S3 error code of its response."""
    storage_class_store = ""
    """The store of a storage class that it wrote to, instead of its bucket's."""
    secondary_records: Sequence[Any] = ()
    """Its further lines in access logs: each an `app.s3.logging.record.SecondaryRecord`."""

    def replace_body(self, receive: Receive) -> None:
        """Set the body that the operation reads to another one."""
        self.receive, self.whole_body = receive, None

    def set_headers(self, names: list[bytes], values: list[bytes]) -> None:
        """Set what follows from the fields of the head."""
        raw = tuple(names)
        self.names = header_names = _names.get(raw) or intern_header_names(raw)
        self.values = values
        self.headers = dict(zip(header_names.text, map(bytes.decode, values, _LATIN_1), strict=False))
        self.repeated = header_names.repeated
        self.amazon = header_names.amazon
        if header_names.repeated:
            texts = [value.decode("latin-1") for value in values]
            for name in header_names.repeated:
                several = [text for other, text in zip(header_names.text, texts, strict=True) if other == name]
                self.headers[name] = ", ".join(several)

    @property
    def bucket_owner(self) -> tuple[str, str]:
        """Id and display name of the bucket's owner. The name is known only if it is the caller."""
        owner_id = self.bucket_row.owner_id
        return owner_id, self.display_name if owner_id == self.account_id else ""

    @property
    def header_list(self) -> list[tuple[bytes, bytes]]:
        """Names in lower case with their values, as in ASGI."""
        return list(zip(self.names.raw, self.values, strict=True))
