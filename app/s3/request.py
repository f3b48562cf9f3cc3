"""One S3 request, parsed once: everything later (signature, policy, index, files) uses these values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence, Set
from itertools import repeat
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


class Names:
    """The names of a head's fields in their order, and what follows from names alone.

    A client sends the same ones with every request, so that all this is found once: see `names_of`.
    """

    __slots__ = ("amazon", "raw", "repeated", "text")

    def __init__(self, raw: tuple[bytes, ...]) -> None:
        self.raw = tuple([name.lower() for name in raw])
        """In lower case."""
        self.text = tuple([name.decode("latin-1") for name in self.raw])
        self.repeated = frozenset(name for name in self.text if self.text.count(name) > 1)
        self.amazon = tuple([name for name in dict.fromkeys(self.text) if name.startswith("x-amz-")])


_LATIN_1 = repeat("latin-1")
_REMEMBERED = 1024
_REMEMBERED_BYTES = 2048
_names: dict[tuple[bytes, ...], Names] = {}


def names_of(raw: tuple[bytes, ...]) -> Names:
    """What there is to know of these names. Kept in memory for heads of usual size, and for so many of them."""
    known = _names.get(raw)
    if known is None:
        known = Names(raw)
        if sum(map(len, raw)) <= _REMEMBERED_BYTES:
            if len(_names) >= _REMEMBERED:
                _names.clear()
            _names[raw] = known
    return known


class S3Request:
    """The head of a request and the way to its body.

    `raw_path` and `raw_query` are the bytes of the request line. `headers` maps lower-case names to values decoded as
    latin-1; a field that came more than once has its values joined by ", " and its name in `repeated`. `query` maps
    decoded names to the first decoded value.
    """

    method: str
    raw_path: bytes
    raw_query: bytes
    names: Names
    values: list[bytes]
    """As they came, in the order of `names`."""
    headers: dict[str, str]
    repeated: Set[str]
    amazon: tuple[str, ...] = ()
    """The names of `headers` that start with `x-amz-`."""
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
    principal: Any = None
    """The `app.access.principal.Principal` who acts for the account; None: the account itself, with its own key."""
    access_key: str | None = None
    display_name = ""
    secret = ""
    """The key of the signature, for signed chunks; never logged."""
    signature: Any = None
    """The verified `app.s3.signing.Claim`, or None."""
    payload = "UNSIGNED-PAYLOAD"
    """What `x-amz-content-sha256` promises of the body, or `UNSIGNED-PAYLOAD`."""
    coming: Any = None
    """Begins what the fast lane must wait for and gives the `app.s3.dispatch.Change`; None: it found no such thing."""
    operation = "Unknown"
    timings: dict[str, float]
    """Seconds by phase: auth, index, open, write, sync, commit, read."""
    region = ""
    """Of a request about no bucket that there is: where it is asked."""
    bucket_row: Any = None
    """The bucket that the operation is on, authorised."""
    sse = False
    """Its headers say something of the encryption of the object that it is about."""
    charged = False
    """Its sender pays for it."""
    tags: dict[str, str] | None = None
    """The tags that it gives an object, once they were read: see `app.s3.tags`."""
    lock: Any = None
    """The `app.index.locks.Lock` that its document gives an object, once it was read."""
    location: str | None = None
    """The LocationConstraint of the bucket that it makes, empty for none; None: not read yet."""
    website = False
    """It is to a website, by its Host or by the port that it came to."""
    also_logged: Sequence[Any] = ()
    """What access logs tell of it beside itself: each an `app.s3.logs.record.Also`."""
    placed = ""
    """The store of a storage class that it wrote to, instead of its bucket's."""
    appends = False
    """It is a PutObject that appends: see `app.s3.operations.append`."""
    undecided = False
    """The right to do it is still to be decided, by the ACL of the object or for each object of the body."""
    by_object: tuple[tuple[str, Any, Any], ...] = ()
    """Actions that only the object's ACL or tags decide, with what is known so far and the condition keys."""

    def take_fields(self, names: list[bytes], values: list[bytes]) -> None:
        """Fill in what comes from the fields of the head."""
        raw = tuple(names)
        self.names = known = _names.get(raw) or names_of(raw)
        self.values = values
        self.headers = dict(zip(known.text, map(bytes.decode, values, _LATIN_1), strict=False))
        self.repeated = known.repeated
        self.amazon = known.amazon
        if known.repeated:
            texts = [value.decode("latin-1") for value in values]
            for name in known.repeated:
                several = [text for other, text in zip(known.text, texts, strict=True) if other == name]
                self.headers[name] = ", ".join(several)

    @property
    def bucket_owner(self) -> tuple[str, str]:
        """Id and display name of the bucket's owner; the name is only known of the caller."""
        owner_id = self.bucket_row.owner_id
        return owner_id, self.display_name if owner_id == self.account_id else ""

    @property
    def header_list(self) -> list[tuple[bytes, bytes]]:
        """Names in lower case with their values, as ASGI has them."""
        return list(zip(self.names.raw, self.values, strict=True))
