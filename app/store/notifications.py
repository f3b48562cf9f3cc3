"""Event notifications: the rules of a bucket, and the messages that they produce.

Source: "Event message structure", Amazon S3 User Guide. Rules are in the bucket's settings. Messages are written in the
transaction of the change (`app.index.engine.outbox`) and sent by `app.jobs.notifications.sender`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote_plus

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import DELETED, EXPIRED, MARKED, PUT, STORAGE_CLASS_CHANGED, ObjectChange
from sluice_s3.app.index.notifications.rows import NewMessage
from sluice_s3.app.index.objects.rows import Version

SETTING = "notification"
"""Name of the bucket's setting."""
MARK = f'"{SETTING}":'
"""Text in the settings of a bucket that has rules: a quoted name occurs nowhere else in JSON."""
PREFIX = "s3:"
REMOVED = {DELETED: "ObjectRemoved:Delete", MARKED: "ObjectRemoved:DeleteMarkerCreated"}
EXPIRATION = {False: "LifecycleExpiration:Delete", True: "LifecycleExpiration:DeleteMarkerCreated"}
LIFECYCLE = "lifecycle"
"""As `Cause.event`: an action of a lifecycle rule."""
RESTORED = {True: "ObjectRestore:Completed", False: "ObjectRestore:Delete"}
"""As `Cause.event`: an archived version was restored, or its restored copy removed."""
SERVICE = "s3.amazonaws.com"
"""Principal and source address of what a lifecycle rule does."""
VERSION_2_3_EVENTS = ("Lifecycle", "ObjectTagging:", "ObjectAcl:", RESTORED[False])
"""Prefixes of the events whose messages have version 2.3."""
EMPTY_ETAG = "d41d8cd98f00b204e9800998ecf8427e"


class Rule(NamedTuple):
    """A rule: which changes go to which target.

    `events` are as in the document, such as `s3:ObjectCreated:*`.
    """

    kind: str
    """The element of the document: Topic, Queue or CloudFunction."""
    id: str
    arn: str
    target: str
    """The name of the target in the settings."""
    events: tuple[str, ...]
    prefix: str = ""
    suffix: str = ""

    def matches(self, event: str, key: str) -> bool:
        """Return whether the rule covers an event (without `s3:`) of a key."""
        return (
            key.startswith(self.prefix)
            and key.endswith(self.suffix)
            and any(
                pattern == PREFIX + event or (pattern.endswith(":*") and (PREFIX + event).startswith(pattern[:-1]))
                for pattern in self.events
            )
        )


class EventContext(NamedTuple):
    """The cause of a change.

    `event` names the event of a new version, or of new headers.
    """

    event: str
    principal: str = SERVICE
    client: str = SERVICE
    request_id: str = ""
    more: Mapping[str, object] = MappingProxyType({})
    """Additional fields of the messages."""


def rules_of(bucket: Bucket) -> tuple[Rule, ...]:
    """Return the rules of a bucket."""
    return _parsed(bucket.settings) if MARK in bucket.settings else ()


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> tuple[Rule, ...]:
    found = orjson.loads(settings).get(SETTING) or []
    return tuple(Rule(*rule)._replace(events=tuple(rule[4])) for rule in found)


class S3EventBuilder:
    """Builder of the messages of one cause, by the rules of its bucket."""

    def __init__(self, bucket: Bucket, cause: EventContext, version: Version | None = None) -> None:
        """`version` is the version whose headers change, if any."""
        self.bucket = bucket
        self.cause = cause
        self.version = version

    def messages(self, change: ObjectChange) -> Sequence[NewMessage]:
        """See `app.index.engine.outbox.EventBuilder`."""
        event = self._event(change)
        new_messages = []
        for rule in rules_of(self.bucket) if event else ():
            if rule.matches(event, change.key):
                record = self._record(rule, event, change)
                text = orjson.dumps({"Records": [record]}).decode()
                new_messages.append(NewMessage(rule.target, self.bucket.id, change.key, text))
        return new_messages

    def _event(self, change: ObjectChange) -> str:
        if self.cause.event == LIFECYCLE and change.kind == STORAGE_CLASS_CHANGED:
            return "LifecycleTransition"
        if self.cause.event == LIFECYCLE:
            return EXPIRATION[change.kind == EXPIRED and bool(self.bucket.versioning)]
        return REMOVED.get(change.kind) or self.cause.event

    def _record(self, rule: Rule, event: str, change: ObjectChange) -> dict[str, Any]:
        cause, bucket = self.cause, self.bucket
        more = dict(cause.more)
        if change.kind == STORAGE_CLASS_CHANGED and cause.event == LIFECYCLE:
            more = {"lifecycleEventData": {"transitionEventData": {"destinationStorageClass": change.storage_class}}}
        return {
            "eventVersion": "2.3" if event.startswith(VERSION_2_3_EVENTS) else "2.1",
            "eventSource": "aws:s3",
            "awsRegion": bucket.region,
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
            "eventName": event,
            "userIdentity": {"principalId": cause.principal},
            "requestParameters": {"sourceIPAddress": cause.client},
            "responseElements": {"x-amz-request-id": cause.request_id, "x-amz-id-2": cause.request_id},
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": rule.id,
                "bucket": {
                    "name": bucket.name,
                    "ownerIdentity": {"principalId": bucket.owner_id},
                    "arn": f"arn:aws:s3:::{bucket.name}",
                },
                "object": self._object(change),
            },
            **more,
        }

    def _object(self, change: ObjectChange) -> dict[str, Any]:
        found: dict[str, Any] = {"key": quote_plus(change.key, safe="/", errors="surrogatepass")}
        version_id = change.version_id
        if change.kind in (PUT, STORAGE_CLASS_CHANGED) and change.etag:
            found |= {"size": change.size, "eTag": change.etag}
        elif change.kind == MARKED:
            found["eTag"] = EMPTY_ETAG
        elif self.version is not None and change.kind != DELETED:
            found |= {"size": self.version.size, "eTag": self.version.etag}
            version_id = change.version_id or self.version.version_id
        if self.bucket.versioning and version_id:
            found["versionId"] = version_id
        return found | {"sequencer": f"{change.seq:016X}"}


def test_event(bucket: Bucket, rule: Rule, cause: EventContext) -> NewMessage:
    """Return the test message for a target that a bucket begins to use."""
    fields = {
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z",
        "Bucket": bucket.name,
        "RequestId": cause.request_id,
        "HostId": cause.request_id,
    }
    return NewMessage(rule.target, bucket.id, "", orjson.dumps(fields).decode())
