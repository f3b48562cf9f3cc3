"""Bodies on their way: read from the source once, hashed, and kept until the destination has them."""

from __future__ import annotations

import base64
import hashlib
import re
from tempfile import SpooledTemporaryFile
from typing import Any

from sluice_s3.app.transfer.endpoints import Bucket
from sluice_s3.app.transfer.errors import NotTaken
from sluice_s3.app.transfer.listing import Entry

MEMORY = 8 << 20
"""Bytes of a body, or of a part, that stay in memory; more go to a temporary file (TMPDIR)."""
CHUNK = 1 << 20
MAX_PUT = 5 << 30
"""Bytes of one PutObject ("Amazon S3 multipart upload limits"). A larger object must be in parts."""
RANGE = 512 << 20
"""Bytes of a part of an object that must be in parts, but has none at the source."""
USUAL_PARTS = tuple(size << 20 for size in (8, 5, 16, 64, 10, 15, 20, 25, 32, 50, 100, 128, 256, 512, 1024))
"""Part sizes of clients in bytes: those of aws and boto3, rclone and s3cmd, mc, and others."""
_MD5 = re.compile("[0-9a-f]{32}")


class Damaged(Exception):
    """The bytes are not those that the source announced."""


class Body:
    """The bytes of an answer, with their MD5."""

    def __init__(self, response: dict[str, Any]) -> None:
        """Read the answer to its end. Raises Damaged when it is too short, and what botocore raises."""
        self.response = response
        self.file = SpooledTemporaryFile(max_size=MEMORY)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self.size = 0
        stream = response["Body"]
        try:
            while piece := stream.read(CHUNK):
                self._md5.update(piece)
                self.file.write(piece)
                self.size += len(piece)
            if self.size != response.get("ContentLength", self.size):
                raise Damaged(f"{self.size} bytes came instead of {response['ContentLength']}")
        except BaseException:
            self.file.close()
            raise
        finally:
            stream.close()

    @property
    def md5(self) -> str:
        """The MD5 in hexadecimal."""
        return self._md5.hexdigest()

    @property
    def content_md5(self) -> str:
        """The MD5 as in the header Content-MD5."""
        return base64.b64encode(self._md5.digest()).decode()

    def rewound(self) -> Any:
        """Return the file at its beginning."""
        self.file.seek(0)
        return self.file

    def close(self) -> None:
        """Forget the bytes."""
        self.file.close()


def address(bucket: Bucket, entry: Entry) -> dict[str, str]:
    """Return the parameters that name a version."""
    named = {"Bucket": bucket.name, "Key": entry.key}
    return named | {"VersionId": entry.version_id} if entry.version_id else named


def is_md5(etag: str) -> bool:
    """Return whether an ETag has the form of an MD5 of the whole body."""
    return _MD5.fullmatch(etag) is not None


def part_count(etag: str) -> int:
    """Return the number of parts that an ETag names; 0 for none."""
    before, _, number = etag.rpartition("-")
    return int(number) if before and number.isdigit() and len(number) <= 5 else 0


def multipart_etag(md5s: list[str]) -> str:
    """Return AWS's ETag of parts with these MD5s."""
    digest = hashlib.md5(bytes.fromhex("".join(md5s)), usedforsecurity=False).hexdigest()
    return f"{digest}-{len(md5s)}"


def has_md5_etag(response: dict[str, Any]) -> bool:
    """Return whether the ETag is made of MD5s of the plain bytes ("Common Response Headers", Amazon S3 API)."""
    kms = str(response.get("ServerSideEncryption", "")).startswith("aws:")
    return not kms and not response.get("SSECustomerAlgorithm")


def check(body: Body, entry: Entry) -> None:
    """Compare a whole body with what the listing said of it. Raises Damaged, NotTaken for a changed object."""
    etag = str(body.response.get("ETag", "")).strip('"')
    if etag != entry.etag:
        raise NotTaken("it changed while it was copied: the next run takes it")
    if body.size != entry.size:
        raise Damaged(f"{body.size} bytes came instead of {entry.size}")
    if is_md5(etag) and has_md5_etag(body.response) and body.md5 != etag:
        raise Damaged(f"the MD5 of what came is {body.md5}, not {etag}")


def ranges(entry: Entry, parts: int, first: int | None) -> list[dict[str, Any]]:
    """Return the parameters that read each part of an object.

    `first` is the size of the first part, where the source tells it. Otherwise the usual sizes of parts are tried: with
    the same parts, the copy gets the same ETag.
    """
    if first is not None and parts:
        return [{"PartNumber": number} for number in range(1, parts + 1)]
    fitting = [size for size in USUAL_PARTS if parts and -(-entry.size // size) == parts]
    mebibytes = -(-entry.size // (parts << 20)) << 20 if parts else RANGE
    step = fitting[0] if fitting else max(mebibytes, 5 << 20)
    return [{"Range": f"bytes={start}-{min(start + step, entry.size) - 1}"} for start in range(0, entry.size, step)]
