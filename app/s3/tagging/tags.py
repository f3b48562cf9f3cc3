"""Tags of objects and buckets: parsing and rendering.

"Categorizing your objects using tags", Amazon S3 User Guide. Tags are sorted by their keys.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes, urlencode
from xml.etree.ElementTree import Element

from sluice_s3.app.s3.errors import BadRequest, InvalidArgument, InvalidTag, MalformedXML
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request

Tags = dict[str, str]

MAX_OBJECT, MAX_BUCKET = 10, 50
MAX_KEY, MAX_VALUE = 128, 256
"""Characters of a key, and of a value."""
MAX_DOCUMENT = 256 * 1024
"""Bytes of a document of tags (50 of the longest fit, escaped)."""
HEADER = "x-amz-tagging"
OPERATIONS = frozenset({"PutObject", "PostObject", "CopyObject", "CreateMultipartUpload"})
"""Operations that take tags of a new object in this header."""
DIRECTIVE = "x-amz-tagging-directive"
_ALLOWED = re.compile(r"[\w\s.:/=+\-@]*")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def parse_header(text: str) -> Tags:
    """Parse a header's value (as latin-1). Raises InvalidArgument, InvalidTag, BadRequest."""
    fields = [field.partition(b"=") for field in text.encode("latin-1").split(b"&") if field]
    pairs = []
    for name, _, value in fields:
        try:
            pairs.append((_decode(name), _decode(value)))
        except ValueError:
            raise _bad_header(text) from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise _bad_header(text)
    return _checked(pairs, MAX_OBJECT)


def parse_xml(document: bytes, most: int) -> Tags:
    """Parse a document `Tagging` of at most `most` tags. Raises MalformedXML, InvalidTag, BadRequest."""
    tree = xml.parse(document, "Tagging")
    xml.check_children(tree, {"TagSet"})
    if len(tree) != 1:
        raise MalformedXML()
    return parse_element(tree[0], most)


def parse_element(element: Element, most: int) -> Tags:
    """Parse an element of at most `most` tags. Raises MalformedXML, InvalidTag, BadRequest."""
    xml.check_children(element, {"Tag"})
    pairs = []
    for tag in element:
        xml.check_children(tag, {"Key", "Value"})
        key, value = xml.child_text(tag, "Key"), xml.child_text(tag, "Value")
        if key is None or value is None:
            raise MalformedXML()
        pairs.append((key, value))
    return _checked(pairs, most)


def to_header(tags: Tags) -> str:
    """Return tags in the form of the header."""
    return urlencode(tags)


def requested_tags(request: S3Request) -> Tags:
    """Return the tags of a request's new object; cached, and usually empty. Raises as `parse_header`."""
    if request.tags is None:
        text = request.headers.get(HEADER)
        request.tags = {} if text is None or not applies_tag_header(request) else parse_header(text)
    return request.tags


def applies_tag_header(request: S3Request) -> bool:
    """Return whether the header applies: a copy takes its source's tags by default."""
    if request.operation == "CopyObject":
        return request.headers.get(DIRECTIVE) == "REPLACE"
    return request.operation in OPERATIONS


def render_xml(tags: Tags) -> bytes:
    """Render tags as a document."""
    content = "".join(f"<Tag>{xml.element('Key', key)}{xml.element('Value', tags[key])}</Tag>" for key in tags)
    return xml.document("Tagging", f"<TagSet>{content}</TagSet>")


def _checked(pairs: list[tuple[str, str]], most: int) -> Tags:
    tags: Tags = {}
    for key, value in pairs:
        if key in tags:
            raise InvalidTag("Cannot provide multiple Tags with the same key", TagKey=key)
        if key.startswith("aws:"):
            raise InvalidTag("System tags cannot be added/updated by requester", TagKey=key)
        if not 1 <= len(key) <= MAX_KEY or not _ALLOWED.fullmatch(key):
            raise InvalidTag("The TagKey you have provided is invalid", TagKey=key[: 2 * MAX_KEY])
        if len(value) > MAX_VALUE or not _ALLOWED.fullmatch(value):
            raise InvalidTag("The TagValue you have provided is invalid", TagKey=key, TagValue=value[: 2 * MAX_VALUE])
        tags[key] = value
    if len(pairs) > most:
        kind = "Object tags" if most == MAX_OBJECT else "Bucket tag count"
        raise BadRequest(f"{kind} cannot be greater than {most}")
    return dict(sorted(tags.items()))


def _decode(raw: bytes) -> str:
    if _BAD_ESCAPE.search(raw):
        raise ValueError
    return unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")


def _bad_header(text: str) -> InvalidArgument:
    return InvalidArgument(
        "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name "
        "duplicates.",
        ArgumentName=HEADER,
        ArgumentValue=text[:1024],
    )
