"""Parses a multipart/form-data body as it arrives: first its fields, then its file in pieces.

"Browser-based uploads using POST", Amazon S3 API Reference. What follows the file is ignored, as on AWS.
"""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from sluice_s3.app.s3.errors import (
    IncompleteBody,
    InvalidArgument,
    MalformedPOSTRequest,
    MaxPostPreDataLengthExceeded,
    PreconditionFailed,
)
from sluice_s3.app.s3.wire.request import Receive

MAX_FIELDS = 20 * 1024
"""Bytes of a form without its file ("HTML form fields", Amazon S3 User Guide)."""
FILE = "file"
IGNORED = "x-ignore-"
FILENAME = "${filename}"
_FOLDERS = re.compile(r"[/\\]")


class UploadForm:
    """The fields of a form and the stream of its file. Names in `fields` are in lower case."""

    def __init__(self, content_type: str, receive: Receive) -> None:
        """Parse the content type of a form.

        Raises PreconditionFailed for a body that is no form, MalformedPOSTRequest for one without a boundary.
        """
        kind, options = parse_options_header(content_type)
        if kind != b"multipart/form-data":
            raise PreconditionFailed(Condition="Bucket POST must be of the enclosure-type multipart/form-data")
        if not options.get(b"boundary"):
            raise MalformedPOSTRequest()
        self.fields: dict[str, str] = {}
        self._receive = receive
        self._header = self._value = b""
        self._disposition = ""
        self._name = self._filename = ""
        self._text = bytearray()
        self._size = 0
        self._in_file = self._file_ended = False
        self._pieces: list[bytes] = []
        self._over = False
        """The request's body has ended."""
        try:
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_header_field": self._take_header,
                    "on_header_value": self._take_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._begin_part,
                    "on_part_data": self._take_data,
                    "on_part_end": self._end_part,
                },
            )
        except FormParserError:
            raise MalformedPOSTRequest() from None

    async def read_fields(self) -> None:
        """Read up to the first byte of the file, and replace `${filename}` by its name.

        Raises MalformedPOSTRequest, MaxPostPreDataLengthExceeded, IncompleteBody, InvalidArgument without a file.
        """
        while not self._in_file:
            if self._over:
                raise InvalidArgument(
                    "POST requires exactly one file upload per request.", ArgumentName=FILE, ArgumentValue="0"
                )
            await self._feed()
        name = _FOLDERS.split(self._filename)[-1]
        self.fields = {field: value.replace(FILENAME, name) for field, value in self.fields.items()}

    async def receive_file(self) -> MutableMapping[str, Any]:
        """Return the file as the body of a request: see `S3Request.receive`."""
        if not self._pieces and not self._file_ended:
            if self._over:
                raise MalformedPOSTRequest()
            await self._feed()
        pieces, self._pieces = self._pieces, []
        return {"type": "http.request", "body": b"".join(pieces), "more_body": not self._file_ended}

    async def _feed(self) -> None:
        message = await self._receive()
        if message["type"] != "http.request":
            raise IncompleteBody()
        self._over = not message.get("more_body", False)
        try:
            self._parser.write(message["body"])
        except FormParserError:
            if not self._file_ended:  # errors after the file's end are ignored, as is all that follows it
                raise MalformedPOSTRequest() from None

    # called by the parser
    def _take_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        self._count(len(self._header) + len(self._value))
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value.decode("latin-1")
        self._header = self._value = b""

    def _begin_part(self) -> None:
        if self._in_file:
            return
        _, options = parse_options_header(self._disposition)
        self._disposition = ""
        self._count(len(self._parser.boundary))
        self._name = _text(options.get(b"name", b"")).lower()
        if not self._name:
            raise MalformedPOSTRequest()
        self._text.clear()
        if self._name == FILE:
            self._in_file = True
            self._filename = _text(options.get(b"filename", b""))
        elif self._name in self.fields and not self._name.startswith(IGNORED):
            # of two values one could be signed and the other used
            raise InvalidArgument("A form field may be given only once.", ArgumentName=self._name)

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._in_file:
            if not self._file_ended:
                self._pieces.append(data[start:end])
        else:
            self._count(end - start)
            self._text += data[start:end]

    def _end_part(self) -> None:
        if self._in_file:
            self._file_ended = True
        else:
            self.fields[self._name] = _text(bytes(self._text))

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MAX_FIELDS and not self._in_file:
            raise MaxPostPreDataLengthExceeded(MaxPostPreDataLengthBytes=MAX_FIELDS)


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise MalformedPOSTRequest() from None
