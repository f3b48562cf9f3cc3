"""Files of a backup as objects of a bucket: sent and read with checks, listed, removed. Every method blocks.

Methods raise what botocore raises, after its own attempts.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from urllib3.exceptions import HTTPError
from xxhash import xxh3_128

from sluice_s3.app.jobs.backup.copying import Copied, SourceFailed
from sluice_s3.app.transfer.errors import code_of

PART_BYTES = 8 << 20
"""What is larger goes in parts; so much of a file is in memory."""
MAX_PARTS = 10_000
"""Of one object ("Amazon S3 multipart upload limits")."""
CHUNK = 1 << 20
ATTEMPTS = 5
"""How often an answer that breaks off is asked for again, from there."""
PAUSE_SECONDS = 0.5
BATCH = 1000
"""Objects that one DeleteObjects removes at most."""
MISSING = frozenset({"NoSuchKey", "404"})


class RemoteFiles:
    """The objects below a prefix of a bucket; names are relative to it."""

    def __init__(self, client: Any, bucket: str, prefix: str) -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = prefix

    def _place(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + name}

    # writing
    def put_bytes(self, name: str, body: bytes) -> str:
        """Write an object; return its ETag."""
        sent = self._client.put_object(**self._place(name), Body=body, ContentMD5=_content_md5(body))
        return str(sent.get("ETag", "")).strip('"')

    def put(self, name: str, source: int, start: int, size: int, *, send: bool = True) -> str:
        """Write a run of an open file as one object; return its XXH3-128. Without `send` it only reads the run."""
        hasher = xxh3_128()
        step = max(PART_BYTES, -(-size // MAX_PARTS))
        pieces = _read_pieces(source, start, size, step, hasher)
        if not send:
            for _ in pieces:
                pass
        elif size <= step:
            self.put_bytes(name, next(pieces, b""))
        else:
            self._put_parts(name, pieces)
        return hasher.hexdigest()

    def _put_parts(self, name: str, pieces: Iterator[bytes]) -> None:
        upload = {
            **self._place(name),
            "UploadId": self._client.create_multipart_upload(**self._place(name))["UploadId"],
        }
        try:
            parts = []
            for number, piece in enumerate(pieces, 1):
                sent = self._client.upload_part(**upload, PartNumber=number, Body=piece, ContentMD5=_content_md5(piece))
                parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
        except BaseException:
            try:
                self._client.abort_multipart_upload(**upload)
            except (BotoCoreError, ClientError):
                pass  # a later `prune` does it
            raise

    # reading
    def read(self, name: str, size: int | None, target: int | None) -> Copied:
        """Read an object, or its first `size` bytes; append them to an open file, if given. Raises SourceFailed."""
        hasher, done, attempt = xxh3_128(), 0, 0
        while size is None or done < size:
            try:
                for piece in self._stream(name, done, size):
                    hasher.update(piece)
                    done += len(piece)
                    _write_all(target, piece)
                    attempt = 0
                break
            except (HTTPClientError, HTTPError):
                attempt += 1
                if attempt == ATTEMPTS:
                    raise
                time.sleep(PAUSE_SECONDS * 2**attempt)
        if size is not None and done < size:
            raise SourceFailed(f"it ends {size - done} bytes early")
        return Copied(done, hasher.hexdigest())

    def _stream(self, name: str, start: int, size: int | None) -> Iterator[bytes]:
        more = {} if not start and size is None else {"Range": f"bytes={start}-{'' if size is None else size - 1}"}
        try:
            body = self._client.get_object(**self._place(name), **more)["Body"]
        except ClientError as error:
            if code_of(error) in MISSING:
                raise SourceFailed("it is missing") from error
            if code_of(error) == "InvalidRange":  # it ends there
                return
            raise
        try:
            while piece := body.read(CHUNK):
                yield piece
        finally:
            body.close()

    # listing
    def children(self, below: str) -> set[str]:
        """Return the names right below, the first 1000; those with more below end with a slash."""
        found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix + below, Delimiter="/")
        skipped = len(self._prefix + below)
        names = {one["Key"][skipped:] for one in found.get("Contents", [])}
        return (names | {one["Prefix"][skipped:] for one in found.get("CommonPrefixes", [])}) - {""}

    def manifests(self, below: str, leaf: str) -> list[str]:
        """Return the names of the directories right below that have a file of this name."""
        names = (name.removeprefix(below).split("/") for name, _, _ in self.listed(below))
        return [parts[0] for parts in names if parts[1:] == [leaf]]

    def listed(self, below: str) -> Iterator[tuple[str, int, datetime]]:
        """Yield name, size and time of all objects below."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix + below)
        for page in pages:
            for one in page.get("Contents", []):
                yield one["Key"].removeprefix(self._prefix), one["Size"], one["LastModified"]

    # removing
    def remove(self, names: list[str]) -> None:
        """Remove objects. Raises ClientError for the first one that cannot be removed."""
        for first in range(0, len(names), BATCH):
            keys = [{"Key": self._prefix + name} for name in names[first : first + BATCH]]
            done = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            for error in done.get("Errors", []):
                raise ClientError({"Error": error}, "DeleteObjects")

    def remove_below(self, below: str) -> None:
        """Remove all objects below, of which there are few."""
        self.remove([name for name, _, _ in self.listed(below)])

    def remove_old(self, below: str, seconds: float, unneeded: Callable[[str], bool]) -> tuple[int, int]:
        """Remove objects that are older and unneeded; return their number and bytes."""
        files = size = 0
        batch: list[str] = []
        for name, bytes_, modified in self.listed(below):
            if _age(modified) >= seconds and unneeded(name):
                files, size = files + 1, size + bytes_
                batch.append(name)
            if len(batch) == BATCH:
                self.remove(batch)
                batch.clear()
        self.remove(batch)
        return files, size

    def abort_old(self, below: str, seconds: float) -> None:
        """Abort older uploads in parts, which killed backups left."""
        pages = self._client.get_paginator("list_multipart_uploads").paginate(
            Bucket=self._bucket, Prefix=self._prefix + below
        )
        for page in pages:
            for one in page.get("Uploads", []):
                if _age(one["Initiated"]) >= seconds:
                    self._client.abort_multipart_upload(Bucket=self._bucket, Key=one["Key"], UploadId=one["UploadId"])


def _read_pieces(source: int, start: int, size: int, step: int, hasher: Any) -> Iterator[bytes]:
    done = 0
    while done < size:
        piece = bytearray()
        wanted = min(step, size - done)
        while len(piece) < wanted:
            try:
                read = os.pread(source, wanted - len(piece), start + done + len(piece))
            except OSError as error:
                raise SourceFailed(error.strerror) from error
            if not read:
                raise SourceFailed(f"it ends {size - done - len(piece)} bytes early")
            piece += read
        hasher.update(piece)
        done += wanted
        yield bytes(piece)


def _write_all(target: int | None, piece: bytes) -> None:
    view = memoryview(piece)
    while target is not None and view:
        view = view[os.write(target, view) :]


def _content_md5(body: bytes) -> str:
    return base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()


def _age(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()
