"""The multipart uploads that a transfer has open, in a file, so that the next run aborts those of a killed one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from sluice_s3.app.transfer.endpoints import Bucket
from sluice_s3.app.transfer.errors import TransferError


def default_directory() -> Path:
    """Return where programs keep their state (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "sluice" / "transfers"


class OpenUploads:
    """The open uploads into one bucket. The file is locked: one transfer at a time writes to a bucket."""

    def __init__(self, directory: Path, target: Bucket) -> None:
        """Raise TransferError when another transfer runs, or the file cannot be written."""
        name = hashlib.sha256(f"{target.connection.url}\n{target.name}".encode()).hexdigest()[:24]
        path = directory / f"{name}.jsonl"
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "r+")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TransferError(f"another transfer into {target.where} runs") from None
        except OSError as error:
            raise TransferError(f"{path}: {error.strerror} (--state names another directory)") from None
        self._target = target
        self._lock = threading.Lock()

    def abort_left(self) -> int:
        """Abort the uploads that a killed transfer left; return their number."""
        self._file.seek(0)
        left: dict[str, str] = {}
        for line in self._file:
            try:
                upload_id, key = json.loads(line)
            except ValueError:  # the last line of a killed process
                continue
            if key is None:
                left.pop(upload_id, None)
            else:
                left[upload_id] = key
        for upload_id, key in left.items():
            self.abort(key, upload_id)
        os.ftruncate(self._file.fileno(), 0)
        return len(left)

    def begin(self, key: str, **arguments: Any) -> str:
        """Create an upload and return its id. Raises what botocore raises."""
        created = self._target.client.create_multipart_upload(Bucket=self._target.name, Key=key, **arguments)
        upload_id = str(created["UploadId"])
        self._write(upload_id, key)
        return upload_id

    def ended(self, upload_id: str) -> None:
        """Note that an upload is completed or aborted."""
        self._write(upload_id, None)

    def abort(self, key: str, upload_id: str) -> None:
        """Abort an upload; one that is gone or cannot be aborted is left to the bucket's lifecycle rules."""
        try:
            self._target.client.abort_multipart_upload(Bucket=self._target.name, Key=key, UploadId=upload_id)
        except (BotoCoreError, ClientError):
            pass

    def close(self) -> None:
        """Let another transfer begin."""
        self._file.close()

    def _write(self, upload_id: str, key: str | None) -> None:
        with self._lock:
            self._file.write(json.dumps([upload_id, key]) + "\n")
            self._file.flush()
