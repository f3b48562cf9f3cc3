"""Writes XML by joining strings, reads it by ElementTree. lxml costs ten times as much for 1000 keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote
from xml.etree import ElementTree

from sluice_s3.app.s3.errors import MalformedXML, S3Error

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
AMAZON = "amazonaws.com/"
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
MAX_DEPTH = 32
MAX_ELEMENTS = 100_000
PIECE_BYTES = 64 * 1024

_NEEDS_ESCAPE = re.compile("[&<>\"'\r\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_UNESCAPED = bytes(byte for byte in range(0x20, 0x7F) if byte not in b"&<>\"'")
_UNENCODED = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~*"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "\r": "&#13;"}


def escape(text: str) -> str:
    """Escape text as element content. Characters that XML 1.0 cannot hold become references, as AWS writes them."""
    if _NEEDS_ESCAPE.search(text) is None:
        return text
    return _NEEDS_ESCAPE.sub(lambda match: _ENTITIES.get(match[0]) or f"&#x{ord(match[0]):x};", text)


def url_encode(text: str) -> str:
    """Encode text for `encoding-type=url`: percent-encoding with slashes kept."""
    return quote(text, safe="/-_.~*")


def element(name: str, value: object) -> str:
    """Return one element with escaped text."""
    return f"<{name}>{escape(str(value))}</{name}>"


def optional(name: str, value: object) -> str:
    """Return one element, or nothing for None and empty text."""
    return "" if value is None or value == "" else element(name, value)


def document(root: str, *contents: str) -> bytes:
    """Return a whole document in S3's namespace. Contents that are long are copied once, so pass them in parts."""
    return "".join((f'{DECLARATION}<{root} xmlns="{NAMESPACE}">', *contents, f"</{root}>")).encode()


def error_document(error: S3Error, resource: str, request_id: str) -> bytes:
    """Return the `<Error>` document of a response, without a namespace as on AWS.

    It is well-formed even when it contains what is no text.
    """
    extra = "".join(element_lossy(name, value) for name, value in error.extra.items())
    return (
        f"{DECLARATION}<Error><Code>{error.code}</Code>{element_lossy('Message', error.text)}{extra}"
        f"{element_lossy('Resource', resource)}<RequestId>{request_id}</RequestId><HostId>{request_id}</HostId></Error>"
    ).encode()


def element_lossy(name: str, text: str) -> str:
    """Return one element, with characters replaced that XML cannot hold, not even as references."""
    return element(name, _ILLEGAL.sub("\ufffd", text))


def encode_all(texts: Sequence[str], encode: Callable[[str], str]) -> Sequence[str]:
    """Return what `encode` (`escape` or `url_encode`) makes of each text.

    It encodes all texts together. Text by text, a page of keys with brackets costs as much as the rest of its listing.
    """
    if encode is url_encode:
        return _url_encode_all(texts)
    joined = "".join(texts)
    plain = joined.isascii() and not joined.encode("ascii").translate(None, _UNESCAPED)
    return texts if plain else list(map(encode, texts))


def _url_encode_all(texts: Sequence[str]) -> Sequence[str]:
    joined = "\0".join(texts).encode().replace(b"%", b"%25")  # first: every other replacement contains it
    for byte in set(joined.translate(None, _UNENCODED + b"%\0")):
        joined = joined.replace(bytes((byte,)), b"%%%02X" % byte)
    encoded = joined.decode("ascii").split("\0")
    # a key may contain a NUL
    return encoded if len(encoded) == len(texts) else list(map(url_encode, texts))


@lru_cache(4096)
def format_second(seconds: int) -> str:
    """Return ISO 8601 without a zone."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def timestamp(milliseconds: int) -> str:
    """Return ISO 8601 with milliseconds, as in listings."""
    return f"{format_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


class _Builder(ElementTree.TreeBuilder):
    """Refuses DOCTYPEs (and so entities), foreign namespaces, and trees of excessive depth or size."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._count = 0

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise MalformedXML()

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        self._depth += 1
        self._count += 1
        namespace, _, name = tag.rpartition("}")
        # clients write S3's namespace in several ways (none, https, doc.s3, without the last slash)
        if self._depth > MAX_DEPTH or self._count > MAX_ELEMENTS or (namespace and AMAZON not in namespace):
            raise MalformedXML()
        return super().start(name, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag.rpartition("}")[2])


def parse(body: bytes, root: str) -> ElementTree.Element:
    """Return the root element, names without namespace.

    Raises MalformedXML for anything but a plain document `root`.
    """
    # no NUL, and so neither UTF-16 nor UTF-32, which the parser would detect by itself
    if b"\0" in body or b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise MalformedXML()
    parser = ElementTree.XMLParser(target=_Builder())  # noqa: S314 - DTDs are refused, size and depth bounded
    try:
        for start in range(
            0, len(body), PIECE_BYTES
        ):  # a parser that has refused still runs to the end of what it was fed
            parser.feed(body[start : start + PIECE_BYTES])
        tree: ElementTree.Element = parser.close()
    except (ElementTree.ParseError, ValueError, LookupError):
        raise MalformedXML() from None
    if tree.tag != root:
        raise MalformedXML()
    return tree


def check_children(parent: ElementTree.Element, names: Set[str]) -> None:
    """Refuse children outside S3's schema, as S3 does. Nothing that a client requests is ignored (law 6)."""
    for child in parent:
        if child.tag not in names:
            raise MalformedXML()


def single_child(parent: ElementTree.Element, name: str) -> ElementTree.Element | None:
    """Return a child; None if there is none. Raises MalformedXML for several."""
    found = parent.findall(name)
    if len(found) > 1:
        raise MalformedXML()
    return found[0] if found else None


def child_text(parent: ElementTree.Element, name: str) -> str | None:
    """Return a child's text; None if there is no such child.

    Raises MalformedXML for several children, or one with children of its own.
    """
    found = parent.findall(name)
    if len(found) > 1 or (found and len(found[0])):
        raise MalformedXML()
    return (found[0].text or "") if found else None


def owner_element(account_id: str, display_name: str, name: str = "Owner") -> str:
    """Return an account as `Owner`, `Initiator` or the like."""
    return f"<{name}><ID>{escape(account_id)}</ID>{optional('DisplayName', display_name)}</{name}>"


def common_prefixes(prefixes: Sequence[str], encode: Callable[[str], str]) -> list[str]:
    """Return each common prefix of a listing as an element."""
    encoded = encode_all(prefixes, encode)
    return [f"<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>" for prefix in encoded]
