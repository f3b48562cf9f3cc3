"""The document that maps events to notification targets.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

from sluice_s3.app.s3.errors import InvalidArgument, MalformedXML, NotImplemented
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.store.notifications import Rule
from sluice_s3.app.store.regions import is_accepted

ROOT = "NotificationConfiguration"
MAX_RULES = 100
MAX_ID = 255
MAX_FILTER = 1024
SERVICES = {"Topic": "sns", "Queue": "sqs", "CloudFunction": "lambda"}
"""Elements that name a target, and the service of its ARN."""
_SUPPORTED_NAMES = """
ObjectCreated:* ObjectCreated:Put ObjectCreated:Post ObjectCreated:Copy ObjectCreated:CompleteMultipartUpload
ObjectRemoved:* ObjectRemoved:Delete ObjectRemoved:DeleteMarkerCreated ObjectTagging:* ObjectTagging:Put
ObjectTagging:Delete ObjectAcl:Put LifecycleExpiration:* LifecycleExpiration:Delete
LifecycleExpiration:DeleteMarkerCreated
"""
SUPPORTED_EVENTS = frozenset("s3:" + name for name in _SUPPORTED_NAMES.split())
_UNSUPPORTED_NAMES = """
ReducedRedundancyLostObject ObjectRestore:* ObjectRestore:Post ObjectRestore:Completed ObjectRestore:Delete
Replication:* Replication:OperationFailedReplication Replication:OperationMissedThreshold
Replication:OperationReplicatedAfterThreshold Replication:OperationNotTracked LifecycleTransition IntelligentTiering
ObjectAnnotation:* ObjectAnnotation:Put ObjectAnnotation:Delete ObjectRetention:Put
"""
UNSUPPORTED_EVENTS = frozenset("s3:" + name for name in _UNSUPPORTED_NAMES.split())
"""Events that never happen here, or emit no message: accepting them would ignore a setting."""
OF_CLASSES = frozenset({"s3:LifecycleTransition"})
OF_ARCHIVES = frozenset("s3:ObjectRestore:" + name for name in ("*", "Post", "Completed", "Delete"))
"""Events that happen where storage classes have stores, and where some of these are archives."""


NO_TARGET = "*"
"""No name of a target."""


class Targets(NamedTuple):
    """The targets that an ARN may name."""

    kinds: Mapping[str, str]
    """Their names, and what each of them is: `webhook`, `nats`, `kafka` or `amqp`."""
    region: str | None
    """The region that ARNs must have, if they have one; None: any."""
    also: Collection[str] = ()
    """Events that happen only with the present settings."""

    def named(self, arn: str, kind: str) -> str:
        """Return the target of an ARN `arn:aws:sqs:REGION:ACCOUNT:NAME`. Raises InvalidArgument.

        The region may be empty; the account is ignored. MinIO's form is `arn:minio:sqs:REGION:NAME:KIND`.
        """
        service = SERVICES[kind]
        parts = arn.split(":")
        if parts[1:2] == ["minio"] and len(parts) == 6:
            parts[5] = parts[4] if self.kinds.get(parts[4]) == parts[5] else NO_TARGET
        if service == "lambda" and len(parts) == 7 and parts[5] == "function":
            del parts[5]
        if len(parts) != 6 or parts[0] != "arn" or parts[2] != service or not parts[5]:
            raise InvalidArgument("The ARN could not be parsed", ArgumentName=kind, ArgumentValue=arn)
        if (parts[3] and not is_accepted(parts[3], self.region)) or parts[5] not in self.kinds:
            raise InvalidArgument(
                "Unable to validate the following destination configurations",
                ArgumentName=arn,
                ArgumentValue=f"The destination {kind.lower()} does not exist",
            )
        return parts[5]


def minio_arn(name: str, kind: str) -> str:
    """Return the ARN that clients of MinIO give a target."""
    return f"arn:minio:sqs::{name}:{kind}"


def parse_configuration(document: bytes, targets: Targets) -> list[Rule]:
    """Parse a configuration. Raises MalformedXML, InvalidArgument, NotImplemented."""
    tree = xml.parse(document, ROOT)
    xml.check_children(tree, {*(f"{kind}Configuration" for kind in SERVICES), "EventBridgeConfiguration"})
    if tree.find("EventBridgeConfiguration") is not None:
        raise NotImplemented()
    if len(tree) > MAX_RULES:
        raise InvalidArgument(f"The number of notification configurations exceeds the limit of {MAX_RULES}.")
    rules = [_rule(element, targets) for element in tree]
    if len({rule.id for rule in rules}) < len(rules):
        raise InvalidArgument("Same ID used for multiple configurations. IDs must be unique")
    for position, rule in enumerate(rules):
        if any(_overlap(rule, other) for other in rules[:position]):
            raise InvalidArgument(
                "Configurations overlap. Configurations on the same bucket cannot share a common event type."
            )
    return rules


def _rule(element: Element, targets: Targets) -> Rule:
    kind = element.tag.removesuffix("Configuration")
    xml.check_children(element, {"Id", kind, "Event", "Filter"})
    arn, name = xml.child_text(element, kind), xml.child_text(element, "Id")
    events = tuple(dict.fromkeys(child.text or "" for child in element.findall("Event")))
    if not arn or not events or any(len(child) for child in element.findall("Event")):
        raise MalformedXML()
    if name is not None and len(name) > MAX_ID:
        raise InvalidArgument(f"The ID of a configuration may have {MAX_ID} characters.", ArgumentName="Id")
    for event in events:
        if event in UNSUPPORTED_EVENTS and event not in targets.also:
            raise NotImplemented()
        if event not in SUPPORTED_EVENTS | UNSUPPORTED_EVENTS:
            raise InvalidArgument(
                "The event is not supported for notifications", ArgumentName="Event", ArgumentValue=event
            )
    prefix, suffix = _filter(element)
    return Rule(kind, name or secrets.token_hex(16), arn, targets.named(arn, kind), events, prefix, suffix)


def _filter(element: Element) -> tuple[str, str]:
    found = element.findall("Filter")
    if not found:
        return "", ""
    xml.check_children(found[0], {"S3Key"})
    if len(found) > 1 or len(found[0]) > 1:
        raise MalformedXML()
    texts: dict[str, str] = {}
    for rule in found[0].findall("S3Key/*"):
        if rule.tag != "FilterRule":
            raise MalformedXML()
        xml.check_children(rule, {"Name", "Value"})
        name, value = (xml.child_text(rule, "Name") or "").lower(), xml.child_text(rule, "Value") or ""
        if name not in ("prefix", "suffix"):
            raise InvalidArgument(
                "filter rule name must be either prefix or suffix", ArgumentName="FilterRule.Name", ArgumentValue=name
            )
        if name in texts:
            raise InvalidArgument(
                f"Cannot specify more than one {name} rule in a filter.", ArgumentName="FilterRule.Name"
            )
        if len(value.encode()) > MAX_FILTER:
            raise InvalidArgument("Size of filter rule value cannot exceed 1024 bytes in UTF-8 representation")
        texts[name] = value
    return texts.get("prefix", ""), texts.get("suffix", "")


def _overlap(one: Rule, other: Rule) -> bool:
    """Return whether one change can match both rules."""
    prefixes = one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)
    suffixes = one.suffix.endswith(other.suffix) or other.suffix.endswith(one.suffix)
    return prefixes and suffixes and any(_same(first, second) for first in one.events for second in other.events)


def _same(first: str, second: str) -> bool:
    if first.endswith(":*") or second.endswith(":*"):
        return first.partition(":")[2].partition(":")[0] == second.partition(":")[2].partition(":")[0]
    return first == second


def render_configuration(rules: Collection[Rule]) -> bytes:
    """Render rules as a document."""
    return xml.document(ROOT, "".join(map(_render_rule, rules)))


def _render_rule(rule: Rule) -> str:
    content = xml.element("Id", rule.id) + xml.element(rule.kind, rule.arn)
    content += "".join(xml.element("Event", event) for event in rule.events)
    filters = "".join(
        f"<FilterRule>{xml.element('Name', name)}{xml.element('Value', value)}</FilterRule>"
        for name, value in (("Prefix", rule.prefix), ("Suffix", rule.suffix))
        if value
    )
    if filters:
        content += f"<Filter><S3Key>{filters}</S3Key></Filter>"
    return f"<{rule.kind}Configuration>{content}</{rule.kind}Configuration>"
