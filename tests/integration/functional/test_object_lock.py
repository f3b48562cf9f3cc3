"""Object lock, by boto3."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.functional.test_policy import OTHER, denied, put, statement
from tests.integration.functional.test_post_object import policy_of, post, signed_v2
from tests.integration.functional.test_versioning import refused
from tests.support.gateway import Gateway, client

pytestmark = pytest.mark.place("postgres", "tree")

FAR = datetime(2140, 1, 1, tzinfo=UTC)
WHO = {"AWS": OTHER}
NEAR = datetime(2130, 1, 1, tzinfo=UTC)
_numbers = itertools.count(1)


def locked_by(s3: Any, bucket: str, key: str, version: str) -> tuple[object, object, object]:
    """Mode, end and legal hold of a version, as HEAD tells them."""
    found = s3.head_object(Bucket=bucket, Key=key, VersionId=version)
    return found.get("ObjectLockMode"), found.get("ObjectLockRetainUntilDate"), found.get("ObjectLockLegalHoldStatus")


def rule(mode: str, **period: int) -> dict[str, Any]:
    return {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": mode, **period}}}


def retention(mode: str, until: datetime) -> dict[str, Any]:
    return {"Mode": mode, "RetainUntilDate": until}


@pytest.fixture
def locked(s3: Any, request: pytest.FixtureRequest, worker_id: str) -> str:
    """A bucket with object lock."""
    name = f"locked-{worker_id}-{next(_numbers)}"
    if "tree" in request.node.name:
        refused(s3.create_bucket, 501, "NotImplemented", Bucket=name, ObjectLockEnabledForBucket=True)
        pytest.skip("others may change plain files")
    s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=True)
    return name


def add(s3: Any, bucket: str, key: str = "k", **lock: Any) -> str:
    version: str = s3.put_object(Bucket=bucket, Key=key, Body=b"body", **lock)["VersionId"]
    return version


def keeps(s3: Any, bucket: str, key: str, version: str, **more: Any) -> None:
    """The version cannot be deleted, alone or with others."""
    refused(s3.delete_object, 403, "AccessDenied", Bucket=bucket, Key=key, VersionId=version, **more)
    entries = {"Objects": [{"Key": key, "VersionId": version}]}
    (error,) = s3.delete_objects(Bucket=bucket, Delete=entries, **more)["Errors"]
    assert (error["Code"], error["Key"], error["VersionId"]) == ("AccessDenied", key, version)
    assert "object lock" in error["Message"]
    assert s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read() == b"body"


def test_configuration(s3: Any, locked: str) -> None:
    assert s3.get_bucket_versioning(Bucket=locked)["Status"] == "Enabled"
    assert s3.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"] == {
        "ObjectLockEnabled": "Enabled"
    }
    for wanted in (rule("GOVERNANCE", Days=1), rule("COMPLIANCE", Years=100), {"ObjectLockEnabled": "Enabled"}):
        s3.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=wanted)
        assert s3.get_object_lock_configuration(Bucket=locked)["ObjectLockConfiguration"] == wanted
    suspended = {"Status": "Suspended"}
    refused(s3.put_bucket_versioning, 409, "InvalidBucketState", Bucket=locked, VersioningConfiguration=suspended)
    s3.put_bucket_versioning(Bucket=locked, VersioningConfiguration={"Status": "Enabled"})


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (rule("GOVERNANCE", Days=1, Years=1), "MalformedXML"),
        (rule("GOVERNANCE"), "MalformedXML"),
        (rule("governance", Days=1), "MalformedXML"),
        (rule("GOVERNANCE", Days=0), "InvalidRetentionPeriod"),
        (rule("GOVERNANCE", Years=-1), "InvalidRetentionPeriod"),
        (rule("GOVERNANCE", Days=36501), "InvalidRetentionPeriod"),
        (rule("GOVERNANCE", Years=101), "InvalidRetentionPeriod"),
        ({**rule("GOVERNANCE", Days=1), "ObjectLockEnabled": "Disabled"}, "MalformedXML"),
        ({"Rule": rule("GOVERNANCE", Days=1)["Rule"]}, "MalformedXML"),
        ({"ObjectLockEnabled": "Enabled", "Rule": {}}, "MalformedXML"),
    ],
)
def test_configurations_that_are_none(s3: Any, locked: str, wanted: dict[str, Any], code: str) -> None:
    refused(s3.put_object_lock_configuration, 400, code, Bucket=locked, ObjectLockConfiguration=wanted)


def test_a_bucket_without_object_lock(s3: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    wanted = rule("GOVERNANCE", Days=1)
    refused(s3.get_object_lock_configuration, 404, "ObjectLockConfigurationNotFoundError", Bucket=bucket)
    expected = (501, "NotImplemented") if "tree" in request.node.name else (409, "InvalidBucketState")
    refused(s3.put_object_lock_configuration, *expected, Bucket=bucket, ObjectLockConfiguration=wanted)
    place = {"Bucket": bucket, "Key": "k"}
    given = retention("GOVERNANCE", FAR)
    refused(s3.put_object_retention, 400, "InvalidRequest", **place, Retention=given)
    refused(s3.put_object_legal_hold, 400, "InvalidRequest", **place, LegalHold={"Status": "ON"})
    refused(s3.get_object_retention, 400, "InvalidRequest", **place)
    refused(s3.get_object_legal_hold, 400, "InvalidRequest", **place)
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FAR}
    refused(s3.put_object, 400, "InvalidRequest", **place, **lock)
    refused(s3.create_multipart_upload, 400, "InvalidRequest", **place, ObjectLockLegalHoldStatus="ON")
    refused(
        s3.copy_object, 400, "InvalidRequest", **place, **lock, CopySource=f"{bucket}/k", MetadataDirective="REPLACE"
    )


def test_object_lock_comes_to_a_bucket_that_is_there(s3: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    if "tree" in request.node.name:
        pytest.skip("others may change plain files")
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=rule("GOVERNANCE", Days=1))
    s3.put_object_legal_hold(Bucket=bucket, Key="k", LegalHold={"Status": "ON"})
    keeps(s3, bucket, "k", "null")


def test_governance(s3: Any, locked: str) -> None:
    version = add(s3, locked)
    place = {"Bucket": locked, "Key": "k"}
    refused(s3.get_object_retention, 404, "NoSuchObjectLockConfiguration", **place)
    s3.put_object_retention(**place, Retention=retention("GOVERNANCE", NEAR))
    assert s3.get_object_retention(**place)["Retention"] == retention("GOVERNANCE", NEAR)
    assert locked_by(s3, locked, "k", version) == ("GOVERNANCE", NEAR, None)
    keeps(s3, locked, "k", version)
    s3.put_object_retention(**place, VersionId=version, Retention=retention("GOVERNANCE", FAR))
    for change in (retention("GOVERNANCE", NEAR), retention("COMPLIANCE", FAR), {}):
        refused(s3.put_object_retention, 403, "AccessDenied", **place, Retention=change)
    s3.put_object_retention(**place, Retention=retention("GOVERNANCE", NEAR), BypassGovernanceRetention=True)
    assert locked_by(s3, locked, "k", version) == ("GOVERNANCE", NEAR, None)
    s3.delete_object(**place, VersionId=version, BypassGovernanceRetention=True)
    refused(s3.get_object, 404, "NoSuchVersion", **place, VersionId=version)
    version = add(s3, locked, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=FAR)
    s3.put_object_retention(**place, Retention={}, BypassGovernanceRetention=True)
    assert locked_by(s3, locked, "k", version) == (None, None, None)


def test_compliance_is_for_everyone(s3: Any, locked: str) -> None:
    version = add(s3, locked, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=NEAR)
    place = {"Bucket": locked, "Key": "k", "BypassGovernanceRetention": True}
    keeps(s3, locked, "k", version, BypassGovernanceRetention=True)
    for change in (retention("GOVERNANCE", FAR), retention("COMPLIANCE", NEAR - timedelta(seconds=1)), {}):
        refused(s3.put_object_retention, 403, "AccessDenied", **place, Retention=change)
    s3.put_object_retention(**place, Retention=retention("COMPLIANCE", NEAR))
    s3.put_object_retention(**place, Retention=retention("COMPLIANCE", FAR))
    assert locked_by(s3, locked, "k", version) == ("COMPLIANCE", FAR, None)
    s3.put_object_tagging(Bucket=locked, Key="k", Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    assert locked_by(s3, locked, "k", version) == ("COMPLIANCE", FAR, None)


def test_legal_hold(s3: Any, locked: str) -> None:
    version = add(s3, locked, ObjectLockLegalHoldStatus="ON")
    place = {"Bucket": locked, "Key": "k"}
    assert s3.get_object_legal_hold(**place)["LegalHold"] == {"Status": "ON"}
    assert locked_by(s3, locked, "k", version) == (None, None, "ON")
    keeps(s3, locked, "k", version, BypassGovernanceRetention=True)
    refused(s3.put_object_legal_hold, 400, "MalformedXML", **place, LegalHold={"Status": "on"})
    s3.put_object_legal_hold(**place, LegalHold={"Status": "OFF"})
    assert s3.get_object_legal_hold(**place)["LegalHold"] == {"Status": "OFF"}
    s3.delete_object(**place, VersionId=version)
    add(s3, locked)
    refused(s3.get_object_legal_hold, 404, "NoSuchObjectLockConfiguration", **place)


def test_a_delete_and_an_overwrite_only_add_versions(s3: Any, locked: str) -> None:
    version = add(s3, locked, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=FAR)
    newer = add(s3, locked)
    s3.delete_object(Bucket=locked, Key="k", VersionId=newer)
    marker = s3.delete_object(Bucket=locked, Key="k")
    assert marker["DeleteMarker"]
    keeps(s3, locked, "k", version)
    refused(s3.delete_bucket, 409, "BucketNotEmpty", Bucket=locked)
    refused(
        s3.put_object_retention,
        405,
        "MethodNotAllowed",
        Bucket=locked,
        Key="k",
        VersionId=marker["VersionId"],
        Retention=retention("GOVERNANCE", FAR),
    )
    s3.delete_object(Bucket=locked, Key="k", VersionId=marker["VersionId"])
    assert s3.head_object(Bucket=locked, Key="k")["VersionId"] == version


@pytest.mark.parametrize("period", [{"Days": 2}, {"Years": 1}])
def test_default_retention(s3: Any, locked: str, period: dict[str, int]) -> None:
    before = add(s3, locked, "before")
    s3.put_object_lock_configuration(Bucket=locked, ObjectLockConfiguration=rule("GOVERNANCE", **period))
    assert locked_by(s3, locked, "before", before) == (None, None, None)
    made = {"put": add(s3, locked, "put")}
    made["copy"] = s3.copy_object(Bucket=locked, Key="copy", CopySource=f"{locked}/before")["VersionId"]
    upload = s3.create_multipart_upload(Bucket=locked, Key="parts")
    place = {"Bucket": locked, "Key": "parts", "UploadId": upload["UploadId"]}
    etag = s3.upload_part(**place, PartNumber=1, Body=b"body")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    made["parts"] = s3.complete_multipart_upload(**place, MultipartUpload=parts)["VersionId"]
    least = timedelta(days=period.get("Days", 365))
    for key, version in made.items():
        mode, until, _ = locked_by(s3, locked, key, version)
        assert mode == "GOVERNANCE"
        assert isinstance(until, datetime)
        assert least - timedelta(minutes=5) < until - datetime.now(UTC) <= least + timedelta(days=1)
        keeps(s3, locked, key, version)
    own = add(s3, locked, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=FAR, ObjectLockLegalHoldStatus="OFF")
    assert locked_by(s3, locked, "k", own) == ("COMPLIANCE", FAR, "OFF")


def test_locks_of_multipart_uploads_and_copies(s3: Any, locked: str) -> None:
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FAR, "ObjectLockLegalHoldStatus": "ON"}
    upload = s3.create_multipart_upload(Bucket=locked, Key="k", **lock)
    place = {"Bucket": locked, "Key": "k", "UploadId": upload["UploadId"]}
    etag = s3.upload_part(**place, PartNumber=1, Body=b"body")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    version = s3.complete_multipart_upload(**place, MultipartUpload=parts)["VersionId"]
    assert locked_by(s3, locked, "k", version) == ("GOVERNANCE", FAR, "ON")
    keeps(s3, locked, "k", version)
    plain = s3.copy_object(Bucket=locked, Key="plain", CopySource=f"{locked}/k")["VersionId"]
    assert locked_by(s3, locked, "plain", plain) == (None, None, None), "a copy takes no lock with it"
    copied = s3.copy_object(Bucket=locked, Key="copied", CopySource=f"{locked}/k", **lock)["VersionId"]
    assert locked_by(s3, locked, "copied", copied) == ("GOVERNANCE", FAR, "ON")
    s3.delete_object(Bucket=locked, Key="plain", VersionId=plain)
    keeps(s3, locked, "copied", copied, BypassGovernanceRetention=True)


@pytest.mark.parametrize(
    ("lock", "code"),
    [
        ({"ObjectLockMode": "GOVERNANCE"}, "InvalidArgument"),
        ({"ObjectLockRetainUntilDate": FAR}, "InvalidArgument"),
        ({"ObjectLockMode": "governance", "ObjectLockRetainUntilDate": FAR}, "InvalidArgument"),
        (
            {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": datetime(2020, 1, 1, tzinfo=UTC)},
            "InvalidArgument",
        ),
        ({"ObjectLockLegalHoldStatus": "on"}, "InvalidArgument"),
    ],
)
def test_locks_that_are_none(s3: Any, locked: str, lock: dict[str, Any], code: str) -> None:
    refused(s3.put_object, 400, code, Bucket=locked, Key="k", Body=b"body", **lock)
    refused(s3.create_multipart_upload, 400, code, Bucket=locked, Key="k", **lock)
    refused(s3.head_object, 404, "404", Bucket=locked, Key="k")


@pytest.mark.parametrize("header", ["event-hold", "event-hold-duration-days", "event-hold-duration-years"])
def test_event_holds_are_not_ignored(gateway: Gateway, s3: Any, locked: str, header: str) -> None:
    def hold(params: dict[str, Any], **_: Any) -> None:
        params["headers"][f"x-amz-object-lock-{header}"] = "ON" if header == "event-hold" else "1"

    holding = client(gateway.endpoint)
    holding.meta.events.register("before-call.s3", hold)
    refused(holding.put_object, 501, "NotImplemented", Bucket=locked, Key="held", Body=b"body")
    refused(holding.create_multipart_upload, 501, "NotImplemented", Bucket=locked, Key="held")
    refused(s3.head_object, 404, "404", Bucket=locked, Key="held")


def test_retentions_that_are_none(s3: Any, locked: str) -> None:
    add(s3, locked)
    past = datetime(2020, 1, 1, tzinfo=UTC)
    place = {"Bucket": locked, "Key": "k"}
    refused(s3.put_object_retention, 400, "InvalidArgument", **place, Retention=retention("GOVERNANCE", past))
    refused(s3.put_object_retention, 400, "MalformedXML", **place, Retention=retention("governance", FAR))
    for half in ({"Mode": "GOVERNANCE"}, {"RetainUntilDate": FAR}):
        refused(s3.put_object_retention, 400, "MalformedXML", **place, Retention=half)


def test_a_form_gives_a_lock(s3: Any, locked: str, gateway: Gateway) -> None:
    fields = {
        "key": "k",
        "x-amz-object-lock-mode": "COMPLIANCE",
        "x-amz-object-lock-retain-until-date": "2140-01-01T00:00:00Z",
        "x-amz-object-lock-legal-hold": "ON",
    }
    conditions = [{"bucket": locked}, *({name: value} for name, value in fields.items())]
    answer = post(gateway, locked, {**fields, **signed_v2(policy_of(*conditions))}, b"body")
    assert answer.status_code == 204
    version = answer.headers["x-amz-version-id"]
    assert locked_by(s3, locked, "k", version) == ("COMPLIANCE", FAR, "ON")
    keeps(s3, locked, "k", version)


def test_rights(s3: Any, other: Any, locked: str) -> None:
    """Who may write may not lock, see locks or bypass them, unless a policy says so."""
    version = add(s3, locked, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=FAR)
    plain = ["s3:PutObject", "s3:GetObject", "s3:GetObjectVersion", "s3:DeleteObjectVersion"]
    put(s3, locked, statement(locked, *plain, principal=WHO))
    place = {"Bucket": locked, "Key": "k"}
    lock = {"ObjectLockMode": "GOVERNANCE", "ObjectLockRetainUntilDate": FAR}
    other.put_object(Bucket=locked, Key="other", Body=b"1")
    denied(other.put_object, Bucket=locked, Key="other", Body=b"1", **lock)
    denied(other.put_object, Bucket=locked, Key="other", Body=b"1", ObjectLockLegalHoldStatus="ON")
    denied(other.put_object_retention, **place, Retention=retention("GOVERNANCE", FAR))
    denied(other.put_object_legal_hold, **place, LegalHold={"Status": "ON"})
    denied(other.get_object_retention, **place)
    denied(other.get_object_legal_hold, **place)
    denied(other.delete_object, **place, VersionId=version, BypassGovernanceRetention=True)
    assert locked_by(other, locked, "k", version) == (None, None, None)
    more = ["s3:GetObjectRetention", "s3:PutObjectRetention", "s3:BypassGovernanceRetention"]
    put(s3, locked, statement(locked, *plain, *more, principal=WHO))
    assert locked_by(other, locked, "k", version) == ("GOVERNANCE", FAR, None)
    other.put_object(Bucket=locked, Key="other", Body=b"1", **lock)
    denied(other.delete_object, **place, VersionId=version)
    other.delete_object(**place, VersionId=version, BypassGovernanceRetention=True)


def test_conditions_on_locks(s3: Any, locked: str) -> None:
    """The longest retention that a policy allows, as in AWS's example."""
    days = {"NumericGreaterThan": {"s3:object-lock-remaining-retention-days": "10"}}
    mode = {"StringEquals": {"s3:object-lock-mode": "COMPLIANCE"}}
    hold = {"StringEquals": {"s3:object-lock-legal-hold": "OFF"}}
    put(
        s3,
        locked,
        statement(locked, "s3:PutObjectRetention", Effect="Deny", Condition=days),
        statement(locked, "s3:PutObjectRetention", Effect="Deny", Condition=mode),
        statement(locked, "s3:PutObjectLegalHold", Effect="Deny", Condition=hold),
    )
    add(s3, locked)
    place = {"Bucket": locked, "Key": "k"}
    near, far = (datetime.now(UTC) + timedelta(days=number) for number in (9, 11))
    denied(s3.put_object_retention, **place, Retention=retention("GOVERNANCE", far))
    denied(s3.put_object_retention, **place, Retention=retention("COMPLIANCE", near))
    denied(s3.put_object_legal_hold, **place, LegalHold={"Status": "OFF"})
    denied(s3.put_object, **place, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=far)
    s3.put_object(**place, ObjectLockMode="GOVERNANCE", ObjectLockRetainUntilDate=near)
    s3.put_object_retention(**place, Retention=retention("GOVERNANCE", near + timedelta(hours=1)))
    s3.put_object_legal_hold(**place, LegalHold={"Status": "ON"})
