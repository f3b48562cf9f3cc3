"""What clients were told: every acknowledged operation, and what must therefore be found after a crash.

A key's `possible` states are what a reader may find. An acknowledged operation leaves one; one whose outcome is not
known (the connection broke, 5xx) adds its own to them, and nobody touches that key again until it was checked.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from botocore.exceptions import BotoCoreError, ClientError

UNKNOWN = (BotoCoreError, ConnectionError)


class Object(NamedTuple):
    """What an object is to its readers. `etag` is empty when the answer that names it never came."""

    size: int
    sha256: str
    etag: str = ""


def brief(state: Object | None) -> str:
    """A state in a message."""
    return "nothing" if state is None else f"{state.size} bytes {state.sha256[:8]}"


def described(body: bytes, etag: str = "") -> Object:
    """The object that a body makes."""
    return Object(len(body), hashlib.sha256(body).hexdigest(), etag)


@dataclass
class Upload:
    """An upload under way: parts that were acknowledged, and parts that may be there."""

    key: str
    parts: dict[int, str] = field(default_factory=dict)
    maybe: set[int] = field(default_factory=set)
    completing: Object | None = None
    """What a Complete that was not answered would have made."""


@dataclass
class Findings:
    """What a check found. `survived` counts keys and uploads that are as acknowledged."""

    survived: int = 0
    wrong: list[str] = field(default_factory=list)


class Ledger:
    """Shared by the client threads of a test; each key belongs to one of them at a time."""

    def __init__(self, bucket: str) -> None:
        self.bucket = bucket
        self.possible: dict[str, set[Object | None]] = {}
        self.unknown: set[str] = set()
        """Keys and upload ids that an operation of unknown outcome was on."""
        self.uploads: dict[str, Upload] = {}
        self.gone_uploads: dict[str, str] = {}
        """Upload ids whose end was acknowledged, with their keys."""
        self.acknowledged = 0
        self.cut = False
        """The power is being cut: no client of a machine without power hears an answer, so answers no longer count.

        Without this the test fails now and then by the kernel's own doing: an fsync that is under way while XFS is
        shut down may succeed with nothing written (1 in 16 cuts with nothing but SQLite on it; never before the cut).
        """
        self.versions: dict[tuple[str, str], Object] = {}
        """Versions that were acknowledged with their ids: all of them must stay."""
        self.history: dict[str, list[str]] = {}
        """What was done to each key, for the message of a failed check."""
        self._lock = threading.Lock()

    def state(self, key: str) -> Object | None:
        """What a settled key holds."""
        (found,) = self.possible.get(key, {None})
        return found

    def settled(self, key: str, found: Object | None) -> None:
        """An operation on the key was acknowledged."""
        with self._lock:
            self.possible[key] = {found}
            self.acknowledged += 1
            self._note(key, f"{brief(found)} acknowledged as {self.acknowledged}")

    def unsettled(self, key: str, *states: Object | None) -> None:
        """An operation that may have made any of these states was not answered."""
        with self._lock:
            self.possible.setdefault(key, {None}).update(states)
            self.unknown.add(key)
            self._note(key, " or ".join(map(brief, states)) + " not answered")

    def kept(self, key: str, version_id: str | None, made: Object) -> None:
        """A version was made that nothing removes, if it was told an id."""
        if version_id is not None:
            with self._lock:
                self.versions[key, version_id] = made

    def check_versions(self, client: Any, read_some: int = 30) -> list[str]:
        """What is wrong with versions: all that were acknowledged are listed, and one of each key is the latest."""
        listed: dict[tuple[str, str], str] = {}
        latest: dict[str, int] = {}
        for page in client.get_paginator("list_object_versions").paginate(Bucket=self.bucket):
            for entry in page.get("Versions", []) + page.get("DeleteMarkers", []):
                listed[entry["Key"], entry["VersionId"]] = entry.get("ETag", "")
                latest[entry["Key"]] = latest.get(entry["Key"], 0) + entry["IsLatest"]
        wrong = [f"{key}: {count} versions are the latest" for key, count in latest.items() if count != 1]
        wrong += [f"{place} is gone" for place, made in self.versions.items() if listed.get(place) != made.etag]
        for key, version_id in list(self.versions)[-read_some:]:
            body = client.get_object(Bucket=self.bucket, Key=key, VersionId=version_id)["Body"].read()
            if described(body)[:2] != self.versions[key, version_id][:2]:
                wrong.append(f"{key} {version_id} has other bytes")
        return wrong

    def _note(self, key: str, text: str) -> None:
        self.history.setdefault(key, []).append(text)

    def acknowledge(self) -> None:
        """Count an acknowledged operation on an upload."""
        with self._lock:
            self.acknowledged += 1

    def check(self, client: Any, keys: set[str] | None = None) -> Findings:
        """Compare what the gateway holds with the ledger, and take what is found as the state from here on.

        `keys` limits the reads; the listing is compared as a whole either way.
        """
        findings = Findings()
        for key in sorted(self.possible if keys is None else keys & self.possible.keys()):
            self._check_key(client, key, findings)
        self._check_listing(client, findings)
        self._check_uploads(client, findings)
        self.unknown.clear()
        return findings

    def _check_key(self, client: Any, key: str, findings: Findings) -> None:
        try:
            found = read(client, self.bucket, key)
        except (ClientError, *UNKNOWN, ValueError) as error:
            findings.wrong.append(f"{key}: {error}; history: {self.history.get(key)}")
            return
        for expected in self.possible[key]:
            if expected == found or (expected and found and not expected.etag and expected[:2] == found[:2]):
                self.possible[key] = {found}
                self._note(key, f"{brief(found)} checked")
                findings.survived += 1
                return
        findings.wrong.append(f"{key}: found {brief(found)}; history: {self.history.get(key)}")

    def _check_listing(self, client: Any, findings: Findings) -> None:
        listed: dict[str, tuple[int, str]] = {}
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket):
            for entry in page.get("Contents", []):
                listed[entry["Key"]] = (entry["Size"], entry["ETag"])
        for key, states in self.possible.items():
            shown = listed.pop(key, None)
            if not any(shown == (state and (state.size, state.etag or (shown and shown[1]))) for state in states):
                findings.wrong.append(f"{key}: listed as {shown}; history: {self.history.get(key)}")
        findings.wrong.extend(f"{key}: a ghost in the listing" for key in listed)

    def _check_uploads(self, client: Any, findings: Findings) -> None:
        open_now = {
            entry["UploadId"]: entry["Key"]
            for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=self.bucket)
            for entry in page.get("Uploads", [])
        }
        for upload_id, key in self.gone_uploads.items():
            if open_now.get(upload_id) == key:
                findings.wrong.append(f"{key}: the upload {upload_id} was ended and is open again")
        for upload_id, upload in list(self.uploads.items()):
            if upload_id not in open_now:
                made = {state and state[:2] for state in self.possible.get(upload.key, {None})}
                if upload_id not in self.unknown or (upload.completing and upload.completing[:2] not in made):
                    findings.wrong.append(f"{upload.key}: the upload {upload_id} is gone")
                del self.uploads[upload_id]
                continue
            shown = client.list_parts(Bucket=self.bucket, Key=upload.key, UploadId=upload_id).get("Parts", [])
            parts = {part["PartNumber"]: part["ETag"] for part in shown}
            wrong = [
                number
                for number in parts.keys() | upload.parts.keys()
                if number not in upload.maybe and parts.get(number) != upload.parts.get(number)
            ]
            if wrong:
                findings.wrong.append(f"{upload.key}: parts {wrong} of {upload_id}: {parts} for {upload.parts}")
            else:
                findings.survived += 1
            upload.parts, upload.maybe = parts, set()


def read(client: Any, bucket: str, key: str) -> Object | None:
    """The object by GET, None when there is none. Raises ValueError when HEAD says something else."""
    try:
        answer = client.get_object(Bucket=bucket, Key=key)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchKey":
            return None
        raise
    body = answer["Body"].read()
    head = client.head_object(Bucket=bucket, Key=key)
    if (head["ContentLength"], head["ETag"]) != (len(body), answer["ETag"]):
        raise ValueError(f"HEAD says {head['ContentLength']} {head['ETag']}, GET {len(body)} {answer['ETag']}")
    return described(body, answer["ETag"])
