"""Documents of inventories, object lock and notifications: what is said twice, or is no part of them, is refused."""

from __future__ import annotations

import pytest

from sluice_s3.app.s3.errors import InvalidArgument, MalformedXML, NotImplemented, S3Error
from sluice_s3.app.s3.inventory import xml as configuration
from sluice_s3.app.s3.notifications import xml as events
from sluice_s3.app.s3.notifications.xml import Targets, minio_arn
from sluice_s3.app.s3.object_lock.xml import DefaultRetention, parse_default_retention, parse_retention

PLACE = "<Bucket>arn:aws:s3:::target</Bucket><Format>CSV</Format>"


def inventory(more: str = "", place: str = PLACE, beside: str = "", schedule: str = "") -> bytes:
    return (
        f"<InventoryConfiguration><Destination><S3BucketDestination>{place}</S3BucketDestination>{beside}</Destination>"
        "<IsEnabled>true</IsEnabled><Id>list</Id><IncludedObjectVersions>All</IncludedObjectVersions>"
        f"<Schedule><Frequency>Daily</Frequency>{schedule}</Schedule>{more}</InventoryConfiguration>"
    ).encode()


def encrypted(*ways: str) -> bytes:
    return inventory(place=PLACE + "".join(f"<Encryption>{way}</Encryption>" for way in ways))


def fields(*names: str) -> str:
    return f"<OptionalFields>{''.join(f'<Field>{name}</Field>' for name in names)}</OptionalFields>"


BY_TAG = "<Filter><Prefix>a</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></Filter>"
KMS = "<SSE-KMS><KeyId>key</KeyId></SSE-KMS>"
INVENTORIES: list[tuple[bytes, type[S3Error]]] = [
    (inventory(BY_TAG), MalformedXML),
    (inventory("<Filter><Prefix>a</Prefix></Filter><Filter><Prefix>b</Prefix></Filter>"), MalformedXML),
    (inventory(fields("Size") + fields("ETag")), MalformedXML),
    (inventory(schedule="<Hour>4</Hour>"), MalformedXML),
    (inventory(beside="<Other/>"), MalformedXML),
    (encrypted("<SSE-S3/>", KMS), MalformedXML),
    (encrypted(KMS), NotImplemented),
    (encrypted("<SSE-S3><KeyId>key</KeyId></SSE-S3>"), MalformedXML),
    (inventory(fields("Size<Unit>KB</Unit>")), MalformedXML),
    (inventory(fields("Size", "LifecycleExpirationDate")), NotImplemented),
    (inventory(fields("ObjectLockEventHoldStatus")), NotImplemented),
]


@pytest.mark.parametrize(("document", "error"), INVENTORIES)
def test_inventories_that_are_none(document: bytes, error: type[S3Error]) -> None:
    with pytest.raises(error):
        configuration.parse_inventory(document, "list")


def test_an_inventory() -> None:
    more = "<Filter><Prefix>a/</Prefix></Filter>" + fields("ETag", "Size")
    found = configuration.parse_inventory(inventory(more, PLACE + "<Encryption><SSE-S3/></Encryption>"), "list")
    assert (found.filter, found.fields, found.encryption) == ("a/", ("Size", "ETag"), "SSE-S3")


def lock(inner: str) -> bytes:
    enabled = "<ObjectLockEnabled>Enabled</ObjectLockEnabled>"
    return f"<ObjectLockConfiguration>{enabled}{inner}</ObjectLockConfiguration>".encode()


def default(mode: str, more: str = "") -> str:
    return f"<DefaultRetention><Mode>{mode}</Mode><Days>1</Days>{more}</DefaultRetention>"


LOCKS: list[tuple[bytes, type[S3Error]]] = [
    (lock(f"<Rule>{default('GOVERNANCE')}</Rule><Rule>{default('COMPLIANCE')}</Rule>"), MalformedXML),
    (lock(f"<Rule>{default('GOVERNANCE')}{default('COMPLIANCE')}</Rule>"), MalformedXML),
    (
        lock(f"<Rule>{default('GOVERNANCE', '<DefaultEventHold><Days>1</Days></DefaultEventHold>')}</Rule>"),
        NotImplemented,
    ),
]


@pytest.mark.parametrize(("document", "error"), LOCKS)
def test_default_retentions_that_are_none(document: bytes, error: type[S3Error]) -> None:
    assert parse_default_retention(lock(f"<Rule>{default('GOVERNANCE')}</Rule>")) == DefaultRetention(
        "GOVERNANCE", days=1
    )
    with pytest.raises(error):
        parse_default_retention(document)


@pytest.mark.parametrize("more", ["<EventHold>ON</EventHold>", "<EventHoldDuration><Days>1</Days></EventHoldDuration>"])
def test_event_holds_are_not_built(more: str) -> None:
    until = "<RetainUntilDate>2099-01-01T00:00:00Z</RetainUntilDate>"
    with pytest.raises(NotImplemented):
        parse_retention(f"<Retention><Mode>GOVERNANCE</Mode>{until}{more}</Retention>".encode())
    with pytest.raises(NotImplemented):
        parse_retention(f"<Retention>{more}</Retention>".encode())


def test_events_have_nothing_in_them() -> None:
    def rule(event: str) -> bytes:
        queue = f"<QueueConfiguration><Queue>arn:aws:sqs:::hook</Queue><Event>{event}</Event></QueueConfiguration>"
        return f"<NotificationConfiguration>{queue}</NotificationConfiguration>".encode()

    targets = Targets({"hook": "webhook"}, "us-east-1")
    assert [one.events for one in events.parse_configuration(rule("s3:ObjectCreated:Put"), targets)] == [
        ("s3:ObjectCreated:Put",)
    ]
    with pytest.raises(MalformedXML):
        events.parse_configuration(rule("s3:ObjectCreated:Put<Size>5</Size>"), targets)


TARGETS = Targets({"hook": "webhook", "bus": "nats"}, "us-east-1")


@pytest.mark.parametrize(
    ("arn", "target"),
    [
        ("arn:aws:sqs:us-east-1:123456789012:hook", "hook"),
        ("arn:aws:sqs:::bus", "bus"),
        ("arn:minio:sqs::hook:webhook", "hook"),
        ("arn:minio:sqs:us-east-1:bus:nats", "bus"),
        (minio_arn("bus", "nats"), "bus"),
    ],
)
def test_arns_of_both_forms_name_a_target(arn: str, target: str) -> None:
    assert TARGETS.named(arn, "Queue") == target


@pytest.mark.parametrize(
    ("arn", "message"),
    [
        ("arn:minio:sqs::hook:nats", "Unable to validate"),
        ("arn:minio:sqs::other:webhook", "Unable to validate"),
        ("arn:minio:sqs:eu-west-1:hook:webhook", "Unable to validate"),
        ("arn:minio:sqs:::hook", "Unable to validate"),
        ("arn:minio:sqs::hook", "could not be parsed"),
        ("arn:minio:sns::hook:webhook", "could not be parsed"),
        ("arn:minio", "could not be parsed"),
        ("", "could not be parsed"),
    ],
)
def test_other_arns_are_refused(arn: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        TARGETS.named(arn, "Queue")
