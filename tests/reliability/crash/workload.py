"""Client threads that write, overwrite, delete, copy, upload in parts, append and rename, and keep the ledger."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from botocore.exceptions import ClientError

from tests.reliability.crash.ledger import UNKNOWN, Ledger, Object, Upload, described
from tests.support.gateway import client

PART = 5 << 20
KEYS = 12
"""Keys of each thread: few, so that most operations meet an object."""


class Lost(Exception):
    """The gateway did not answer, so that the outcome is not known."""


class Clients:
    """`threads` clients that work until the block ends, or until one of their operations is not answered.

    With `persist` a client goes on after that, with other keys. With `rewrite` they append and rename as well.
    """

    def __init__(
        self,
        ledger: Ledger,
        endpoint: str,
        *,
        threads: int,
        seed: int,
        persist: bool = False,
        rewrite: bool = False,
    ) -> None:
        self._persist = persist
        self._rewrite = rewrite
        self._ledger = ledger
        self._endpoint = endpoint
        self._stop = threading.Event()
        self.faults: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._work, args=(number, random.Random(f"{seed}/{number}")), daemon=True)
            for number in range(threads)
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads), "a client hangs"

    def wait_for(self, acknowledged: int) -> None:
        """Return as soon as the ledger counts that many acknowledged operations."""
        while self._ledger.acknowledged < acknowledged and any(thread.is_alive() for thread in self._threads):
            self._stop.wait(0.001)

    def wait(self, seconds: float) -> None:
        """Let them work for a while."""
        self._stop.wait(seconds)

    def _work(self, number: int, rng: random.Random) -> None:
        worker = Worker(self._ledger, client(self._endpoint), f"t{number}", rng, rewrite=self._rewrite)
        try:
            while not self._stop.is_set():
                try:
                    worker.step()
                except Lost:
                    if not self._persist:
                        return
                    self._stop.wait(0.02)
        except BaseException as fault:
            self.faults.append(fault)


class Worker:
    """One client and its keys."""

    def __init__(self, ledger: Ledger, s3: Any, name: str, rng: random.Random, *, rewrite: bool = False) -> None:
        self._rewrite = rewrite
        self._bodies: dict[str, bytes] = {}
        """What this client put last, to know what comes of an append."""
        self._ledger = ledger
        self._bucket = ledger.bucket
        self._s3 = s3
        self._rng = rng
        self._keys = [f"{name}/key-{number}" for number in range(KEYS)]
        self._fresh = f"{name}/new-{rng.randrange(1 << 40):x}-"

    def step(self) -> None:
        """One operation (a multipart upload is several). Raises Lost when its outcome is unknown."""
        choices: list[Callable[[], None]] = [self.put_new, self.overwrite, self.delete, self.copy, self.multipart]
        if self._rewrite:
            choices += [self.append, self.rename]
        self._rng.choices(choices, weights=[40, 25, 15, 10, 10, 15, 10][: len(choices)])[0]()

    def put_new(self) -> None:
        """A key that was never there."""
        self._put(f"{self._fresh}{self._rng.randrange(1 << 40):x}")

    def overwrite(self) -> None:
        """A key that mostly is there."""
        self._put(self._pick())

    def _pick(self) -> str:
        settled = [key for key in self._keys if key not in self._ledger.unknown]
        return self._rng.choice(settled) if settled else f"{self._fresh}{self._rng.randrange(1 << 40):x}"

    def _put(self, key: str) -> None:
        body = self._rng.randbytes(self._rng.choice([0, 1, 500, 4096, 40_000, 40_000, 1_200_000]))
        after = described(body)
        answer = self._do(key, after, self._s3.put_object, Key=key, Body=body)
        self._ledger.settled(key, after._replace(etag=answer["ETag"]))
        self._ledger.kept(key, answer.get("VersionId"), after._replace(etag=answer["ETag"]))
        if self._rewrite:
            self._bodies[key] = body

    def append(self) -> None:
        """Behind what we put to a key, if that is still there."""
        key = self._pick()
        state, body = self._ledger.state(key), self._bodies.get(key)
        if body is None or state is None or state[:2] != described(body)[:2]:
            return self._put(key)
        more = self._rng.randbytes(self._rng.choice([1, 700, 60_000, 300_000]))
        after = described(body + more)
        answer = self._do(key, after, self._s3.put_object, Key=key, Body=more, WriteOffsetBytes=len(body))
        self._ledger.settled(key, after._replace(etag=answer["ETag"]))
        self._bodies[key] = body + more
        return None

    def rename(self) -> None:
        """One of our keys to another, where there may be something."""
        source, key = self._pick(), self._pick()
        state = self._ledger.state(source)
        if source == key or state is None:
            return self._put(source)
        try:
            self._do(key, state, self._s3.rename_object, Key=key, RenameSource=quote(source))
        except Lost:
            self._ledger.unsettled(source, None)
            raise
        self._ledger.settled(key, state)
        self._ledger.settled(source, None)
        if source in self._bodies:
            self._bodies[key] = self._bodies.pop(source)
        return None

    def delete(self) -> None:
        """A key that mostly is there."""
        key = self._pick()
        self._do(key, None, self._s3.delete_object, Key=key)
        self._ledger.settled(key, None)

    def copy(self) -> None:
        """One of our keys onto another."""
        source, key = self._pick(), self._pick()
        if source == key:
            return self._put(key)
        state = self._ledger.state(source)
        if state is None:
            return self._put(source)
        after = state._replace(etag="")
        answer = self._do(key, after, self._s3.copy_object, Key=key, CopySource={"Bucket": self._bucket, "Key": source})
        self._ledger.settled(key, after._replace(etag=answer["CopyObjectResult"]["ETag"]))
        return None

    def multipart(self) -> None:
        """Create, one or two parts, and complete, abort or leave open."""
        key = self._pick()
        upload_id = self._do("", None, self._s3.create_multipart_upload, Key=key)["UploadId"]
        upload = self._ledger.uploads[upload_id] = Upload(key)
        self._ledger.acknowledge()
        bodies = [self._rng.randbytes(self._rng.randrange(1, 50_000))]
        if self._rng.random() < 0.3:
            bodies.insert(0, self._rng.randbytes(PART))
        for number, body in enumerate(bodies, 1):
            upload.maybe.add(number)
            answer = self._do("", None, self._s3.upload_part, Key=key, UploadId=upload_id, PartNumber=number, Body=body)
            upload.parts[number] = answer["ETag"]
            upload.maybe.discard(number)
            self._ledger.acknowledge()
        ending = self._rng.choices([self._complete, self._abort, None], weights=[6, 2, 1])[0]
        if ending is not None:
            ending(upload_id, upload, b"".join(bodies))
            del self._ledger.uploads[upload_id]
            self._ledger.gone_uploads[upload_id] = key

    def _complete(self, upload_id: str, upload: Upload, body: bytes) -> None:
        parts = [{"PartNumber": number, "ETag": etag} for number, etag in sorted(upload.parts.items())]
        after = upload.completing = described(body)
        self._ledger.unknown.add(upload_id)
        answer = self._do(
            upload.key,
            after,
            self._s3.complete_multipart_upload,
            Key=upload.key,
            UploadId=upload_id,
            MultipartUpload={"Parts": parts},
        )
        self._ledger.unknown.discard(upload_id)
        self._ledger.settled(upload.key, after._replace(etag=answer["ETag"]))

    def _abort(self, upload_id: str, upload: Upload, _: bytes) -> None:
        self._ledger.unknown.add(upload_id)
        self._do("", None, self._s3.abort_multipart_upload, Key=upload.key, UploadId=upload_id)
        self._ledger.unknown.discard(upload_id)
        self._ledger.acknowledge()

    def _do(self, key: str, after: Object | None, call: Callable[..., Any], **arguments: Any) -> Any:
        """Call; when the outcome stays unknown, enter `after` as possible for the key (if one is named)."""
        try:
            answer = call(Bucket=self._bucket, **arguments)
            if not self._ledger.cut:
                return answer
            lost = Lost("answered after the power was cut")
        except (ClientError, *UNKNOWN) as error:
            if isinstance(error, ClientError) and error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                raise
            lost = Lost(str(error))
        if key:
            self._ledger.unsettled(key, after)
        raise lost
