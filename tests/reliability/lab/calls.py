"""Calls of one key through several gateways, and what came of them as `Operation`s."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from tests.reliability.lab.checkers.histories import ABSENT, IF_NONE_MATCH, Kind, Operation, Outcome, Removal
from tests.support.gateway import ACCESS_KEY, SECRET_KEY
from tests.support.raw_http import PATIENCE, Answer, Client, Request
from tests.support.signing import Key, Way, sign_full

ROOT = Key(ACCESS_KEY, SECRET_KEY)


class Wrong(AssertionError):
    """An answer that must never be given."""


UNKNOWN = (0, 409, 503, 507)
"""Answers that leave it open what happened."""
UNSENT = -1
"""The status of a call that found nobody to take its connection: it surely did not happen."""


class Wire:
    """Connections of one thread to every gateway. Where no bucket is given, keys begin with theirs."""

    def __init__(self, endpoints: Sequence[str], bucket: str = "", *, patience: float = PATIENCE) -> None:
        self._clients = [Client(endpoint, patience=patience) for endpoint in endpoints]
        self._bucket = bucket

    @property
    def gateways(self) -> int:
        """How many there are."""
        return len(self._clients)

    def path(self, key: str) -> str:
        """The path of a key."""
        return f"/{self._bucket}/{key}" if self._bucket else f"/{key}"

    def call(
        self, gateway: int, method: str, where: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Answer:
        """Call one gateway; `where` is path and query behind the bucket. The status is 0 when it did not answer."""
        client = self._clients[gateway]
        path, _, query = where.partition("?")
        request = Request(method, self.path(path), query, tuple((headers or {}).items()), body)
        try:
            client.connect()
        except OSError:
            return Answer(UNSENT, {})
        try:
            return client.ask(sign_full(request, ROOT, Way(client.host)).request)
        except OSError:
            client.close()
            return Answer(0, {})

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()


def condition_headers(condition: str | None) -> dict[str, str]:
    """The header of a condition."""
    if condition is None:
        return {}
    return {"If-None-Match": "*"} if condition == IF_NONE_MATCH else {"If-Match": f'"{condition}"'}


class Caller:
    """One thread's calls; `bodies` are all that were ever written, by their ETags."""

    def __init__(self, wire: Wire, bodies: dict[str, bytes], name: str) -> None:
        self.wire = wire
        self._bodies = bodies
        self._name = name

    def read(self, gateway: int, key: str, method: str = "GET") -> Operation:
        """GET or HEAD."""
        begun = time.monotonic()
        answer = self.wire.call(gateway, method, key)
        made = Operation(Kind.READ, begun, time.monotonic(), Outcome.DONE, answer.etag, None, f"{self._name} {method}")
        if answer.status == 404:
            return made._replace(value=ABSENT)
        if answer.status != 200:
            return self._unknown(answer, made)
        if method == "GET" and answer.body != self._bodies.get(answer.etag):
            raise Wrong(f"{key}: {len(answer.body)} bytes that are not those of {answer.etag}")
        return made

    def put(
        self,
        gateway: int,
        key: str,
        body: bytes,
        condition: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Operation:
        """PutObject."""
        etag = self.know(body)
        begun = time.monotonic()
        answer = self.wire.call(gateway, "PUT", key, {**condition_headers(condition), **(headers or {})}, body)
        return self._written(begun, answer, Kind.WRITE, etag, condition, "PUT")

    def rename(self, gateway: int, key: str, source: str, etag: str) -> Operation:
        """RenameObject of a source that nobody else knows; `source` is a key of the bucket alone."""
        begun = time.monotonic()
        answer = self.wire.call(gateway, "PUT", f"{key}?renameObject=", {"x-amz-rename-source": source})
        return self._written(begun, answer, Kind.WRITE, etag, None, "Rename")

    def remove(self, gateway: int, key: str, version: str) -> Removal:
        """DeleteObject of one version."""
        begun = time.monotonic()
        answer = self.wire.call(gateway, "DELETE", f"{key}?versionId={version}")
        outcomes = {204: Outcome.DONE, 403: Outcome.REFUSED, UNSENT: Outcome.UNSENT}
        if answer.status not in outcomes and answer.status not in UNKNOWN:
            raise Wrong(f"{self._name}: removing {version}: {answer.status} {answer.body[:300]!r}")
        return Removal(key, version, begun, time.monotonic(), outcomes.get(answer.status, Outcome.UNKNOWN))

    def copy(self, gateway: int, key: str, source: str, etag: str, condition: str | None = None) -> Operation:
        """CopyObject of a source that never changes."""
        begun = time.monotonic()
        headers = {"x-amz-copy-source": self.wire.path(source), **condition_headers(condition)}
        answer = self.wire.call(gateway, "PUT", key, headers)
        return self._written(begun, answer, Kind.WRITE, etag, condition, "Copy")

    def delete(self, gateway: int, key: str, condition: str | None = None) -> Operation:
        """DeleteObject."""
        begun = time.monotonic()
        answer = self.wire.call(gateway, "DELETE", key, condition_headers(condition))
        return self._written(begun, answer, Kind.DELETE, ABSENT, condition, "DELETE")

    def upload(self, gateway: int, key: str, body: bytes) -> str | None:
        """An upload of one part that is ready for its Complete; None when it could not be made."""
        answer = self.wire.call(gateway, "POST", f"{key}?uploads=")
        _, found, rest = answer.body.decode().partition("<UploadId>")
        if answer.status != 200 or not found:
            return None
        upload = rest.partition("</UploadId>")[0]
        where = f"{key}?partNumber=1&uploadId={upload}"
        return upload if self.wire.call(gateway, "PUT", where, None, body).status == 200 else None

    def complete(self, gateway: int, key: str, upload: str, body: bytes, condition: str | None = None) -> Operation:
        """CompleteMultipartUpload."""
        etag = self.know(body, parts=1)
        part = hashlib.md5(body).hexdigest()
        document = (
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber>"
            f"<ETag>{part}</ETag></Part></CompleteMultipartUpload>"
        )
        begun = time.monotonic()
        where = f"{key}?uploadId={upload}"
        answer = self.wire.call(gateway, "POST", where, condition_headers(condition), document.encode())
        if answer.status == 200 and b"<Error>" in answer.body:
            answer = replace(answer, status=503)
        return self._written(begun, answer, Kind.WRITE, etag, condition, "Complete")

    def know(self, body: bytes, parts: int = 0) -> str:
        """The ETag that a body has."""
        digest = hashlib.md5(body)
        etag = f"{hashlib.md5(digest.digest()).hexdigest()}-{parts}" if parts else digest.hexdigest()
        self._bodies[etag] = body
        return etag

    def _written(
        self, begun: float, answer: Answer, kind: Kind, value: str, condition: str | None, what: str
    ) -> Operation:
        who, version = f"{self._name} {what}", answer.headers.get("x-amz-version-id", "")
        made = Operation(kind, begun, time.monotonic(), Outcome.DONE, value, condition, who, version)
        if answer.status in (200, 204):
            return made
        if answer.status == 412 and condition is not None:
            return made._replace(outcome=Outcome.REFUSED)
        if answer.status == 404 and condition not in (None, IF_NONE_MATCH) and b"<Code>NoSuchKey<" in answer.body:
            return made._replace(outcome=Outcome.MISSING)
        return self._unknown(answer, made)

    @staticmethod
    def _unknown(answer: Answer, made: Operation) -> Operation:
        """What came of a call whose answer says nothing. Raises Wrong for one that must not be given."""
        if answer.status == UNSENT:
            return made._replace(outcome=Outcome.UNSENT, ended=inf)
        if answer.status not in UNKNOWN:
            raise Wrong(f"{made.who}: {answer.status} {answer.body[:300]!r}")
        return made._replace(outcome=Outcome.UNKNOWN, ended=inf)
