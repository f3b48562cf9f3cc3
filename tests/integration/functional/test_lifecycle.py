"""Lifecycle rules, by boto3: what is configured and shown, and what happens when days are short."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from tests.integration.functional.test_versioning import refused, switch
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.places import placed
from tests.support.waiting import eventually

pytestmark = pytest.mark.place

RULE = {"ID": "it is/one", "Status": "Enabled", "Filter": {"Prefix": "old/"}, "Expiration": {"Days": 3}}
LONG_AGO = datetime(2015, 1, 1, tzinfo=UTC)


def configure(s3: Any, bucket: str, *rules: dict[str, Any], **more: Any) -> Any:
    return s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": list(rules)}, **more)


@pytest.fixture
def ruled(s3: Any, bucket: str, request: pytest.FixtureRequest) -> str:
    """A bucket whose objects under `old/` go after three days."""
    if "tree" in request.node.name:
        refused(configure_it(s3, bucket), 501, "NotImplemented")
        refused(s3.get_bucket_lifecycle_configuration, 404, "NoSuchLifecycleConfiguration", Bucket=bucket)
        pytest.skip("others may change plain files")
    configure(s3, bucket, RULE)
    return bucket


def configure_it(s3: Any, bucket: str) -> Callable[[], Any]:
    return lambda: configure(s3, bucket, RULE)


def test_rules_are_kept_shown_and_forgotten(s3: Any, ruled: str) -> None:
    found = s3.get_bucket_lifecycle_configuration(Bucket=ruled)
    assert (found["Rules"], found["TransitionDefaultMinimumObjectSize"]) == ([RULE], "all_storage_classes_128K")
    rules: list[dict[str, Any]] = [
        {"ID": "a", "Status": "Disabled", "Prefix": "p&<", "Expiration": {"Date": LONG_AGO}},
        {"ID": "b", "Status": "Enabled", "Prefix": "", "NoncurrentVersionExpiration": {"NoncurrentDays": 4}},
        {"ID": "c", "Status": "Enabled", "Prefix": "", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}},
        {"ID": "d", "Status": "Enabled", "Prefix": "d", "Expiration": {"ExpiredObjectDeleteMarker": True}},
    ]
    done = configure(s3, ruled, *rules, TransitionDefaultMinimumObjectSize="varies_by_storage_class")
    assert done["TransitionDefaultMinimumObjectSize"] == "varies_by_storage_class"
    assert s3.get_bucket_lifecycle_configuration(Bucket=ruled)["Rules"] == rules
    for _ in range(2):
        s3.delete_bucket_lifecycle(Bucket=ruled)
        refused(s3.get_bucket_lifecycle_configuration, 404, "NoSuchLifecycleConfiguration", Bucket=ruled)


def test_what_cannot_be_done_is_refused(s3: Any, ruled: str) -> None:
    transition = {**RULE, "Transitions": [{"Days": 30, "StorageClass": "STANDARD_IA"}], "Expiration": {"Days": 31}}
    noncurrent = {**RULE, "NoncurrentVersionTransitions": [{"NoncurrentDays": 30, "StorageClass": "GLACIER"}]}
    for rule in (transition, noncurrent):
        refused(lambda rule=rule: configure(s3, ruled, rule), 501, "NotImplemented")
    refused(lambda: configure(s3, ruled, {**RULE, "Expiration": {"Days": 0}}), 400, "InvalidArgument")
    refused(lambda: configure(s3, ruled, {**RULE, "Status": "on"}), 400, "MalformedXML")
    refused(lambda: configure(s3, ruled, RULE, RULE), 400, "InvalidArgument")
    assert s3.get_bucket_lifecycle_configuration(Bucket=ruled)["Rules"] == [RULE]


def test_only_who_may_configures(s3: Any, other: Any, ruled: str) -> None:
    at = {"Bucket": ruled}
    refused(lambda: configure(other, ruled, RULE), 403, "AccessDenied")
    refused(other.get_bucket_lifecycle_configuration, 403, "AccessDenied", **at)
    refused(other.delete_bucket_lifecycle, 403, "AccessDenied", **at)


def test_answers_tell_when_an_object_goes(s3: Any, ruled: str) -> None:
    at = {"Bucket": ruled, "Key": "old/one"}
    source = {"Bucket": ruled, "Key": "old/one"}
    upload = {**at, "UploadId": s3.create_multipart_upload(**at)["UploadId"]}
    part = s3.upload_part(PartNumber=1, Body=b"x", **upload)
    completed = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    answers = [
        s3.complete_multipart_upload(MultipartUpload=completed, **upload),
        s3.put_object(Body=b"x", **at),
        s3.get_object(**at),
        s3.head_object(**at),
        s3.copy_object(Bucket=ruled, Key="old/two", CopySource=source),
    ]
    for answer in answers:
        date, rule = answer["Expiration"].split(", rule-id=")
        assert rule == '"it%20is%2Fone"'
        when = parsedate_to_datetime(date.removeprefix("expiry-date=").strip('"'))
        assert (when.hour, when.minute, when.second) == (0, 0, 0)
        assert timedelta(days=2) < when - datetime.now(UTC) <= timedelta(days=4)
    s3.put_object(Bucket=ruled, Key="new", Body=b"x")
    assert "Expiration" not in s3.head_object(Bucket=ruled, Key="new")


def test_what_never_goes_is_told_a_date_that_there_is(s3: Any, ruled: str) -> None:
    never = {"DaysAfterInitiation": 2**31 - 1}
    configure(s3, ruled, {**RULE, "Expiration": {"Days": 2**31 - 1}, "AbortIncompleteMultipartUpload": never})
    done = s3.put_object(Bucket=ruled, Key="old/never", Body=b"x")
    assert 'expiry-date="Fri, 31 Dec 9999 00:00:00 GMT"' in done["Expiration"]
    assert s3.create_multipart_upload(Bucket=ruled, Key="old/never")["AbortDate"].year == 9999


def test_tags_decide_what_answers_tell(s3: Any, ruled: str) -> None:
    tags = [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]
    rule = {"ID": "r", "Status": "Enabled", "Filter": {"And": {"Tags": tags}}, "Expiration": {"Date": LONG_AGO}}
    configure(s3, ruled, rule)
    at = {"Bucket": ruled, "Key": "k"}
    assert "Expiration" not in s3.put_object(Body=b"", Tagging="a=1", **at)
    told = s3.put_object(Body=b"", Tagging="a=1&b=2&c=3", **at)["Expiration"]
    assert told == 'expiry-date="Thu, 01 Jan 2015 00:00:00 GMT", rule-id="r"'


def test_answers_tell_when_an_upload_ends(s3: Any, ruled: str) -> None:
    ending = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 2}}
    configure(s3, ruled, {"ID": "end it", "Status": "Enabled", "Filter": {"Prefix": "big/"}, **ending})
    made = s3.create_multipart_upload(Bucket=ruled, Key="big/one")
    listed = s3.list_parts(Bucket=ruled, Key="big/one", UploadId=made["UploadId"])
    for answer in (made, listed):
        assert answer["AbortRuleId"] == "end%20it"
        assert timedelta(days=1) < answer["AbortDate"] - datetime.now(UTC) <= timedelta(days=3)
    assert "AbortDate" not in s3.create_multipart_upload(Bucket=ruled, Key="small")


@pytest.fixture(scope="module", params=["here", "postgres"])
def short(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose days last a second."""
    directory = tmp_path_factory.mktemp("short")
    env = {"SLUICE_LIFECYCLE_DAY_SECONDS": "1"}
    options = ("--admin-port", "0")
    home = directory / "data"
    with placed(directory, request.param) as place, Gateway(home, place=place, env=env, options=options) as running:
        yield running


def keys(s3: Any, bucket: str) -> list[str]:
    return [entry["Key"] for entry in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_short_days(short: Gateway) -> None:
    """Objects, older versions, delete markers and uploads go; what is locked, or not meant, stays."""
    s3 = client(short.endpoint)
    for name in ("plain", "versioned", "locked"):
        s3.create_bucket(Bucket=name, ObjectLockEnabledForBucket=name == "locked")
    switch(s3, "versioned", "Enabled")
    for key in ("old/1", "old/2", "stays"):
        s3.put_object(Bucket="plain", Key=key, Body=b"x")
    for body in (b"1", b"2", b"3"):
        s3.put_object(Bucket="versioned", Key="k", Body=body)
    s3.create_multipart_upload(Bucket="versioned", Key="open")
    s3.put_object(Bucket="locked", Key="held", Body=b"x", ObjectLockLegalHoldStatus="ON")
    s3.put_object(Bucket="locked", Key="free", Body=b"x")
    configure(s3, "plain", {**RULE, "Expiration": {"Days": 1}})
    everything = {
        "ID": "all",
        "Status": "Enabled",
        "Filter": {},
        "Expiration": {"Days": 1},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 1},
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    }
    configure(s3, "versioned", everything)
    configure(s3, "locked", everything)
    eventually(lambda: keys(s3, "plain") == ["stays"])
    eventually(lambda: "Versions" not in s3.list_object_versions(Bucket="versioned"))
    eventually(lambda: "DeleteMarkers" not in s3.list_object_versions(Bucket="versioned"))
    eventually(lambda: "Uploads" not in s3.list_multipart_uploads(Bucket="versioned"))
    s3.delete_bucket(Bucket="versioned")
    eventually(lambda: len(s3.list_object_versions(Bucket="locked").get("DeleteMarkers", [])) == 1)
    eventually(lambda: len(s3.list_object_versions(Bucket="locked").get("Versions", [])) == 1)
    (kept,) = s3.list_object_versions(Bucket="locked")["Versions"]
    assert s3.get_object(Bucket="locked", Key="held", VersionId=kept["VersionId"])["Body"].read() == b"x"
    metrics = httpx.get(f"{short.admin}/metrics").text
    for kind in ("object", "older", "marker", "upload"):
        (line,) = [one for one in metrics.splitlines() if one.startswith(f'sluice_lifecycle_total{{kind="{kind}"}}')]
        assert int(line.split()[-1]) > 0


def test_writes_meanwhile_are_not_lost(short: Gateway) -> None:
    """Keys are written again and again while they expire: each read finds what was written last, or nothing."""
    s3 = client(short.endpoint)
    s3.create_bucket(Bucket="busy")
    configure(s3, "busy", {**RULE, "Filter": {}, "Expiration": {"Days": 1}})
    for number in range(sized(100, 20_000)):
        key = f"k{number % 20}"
        s3.put_object(Bucket="busy", Key=key, Body=b"%d" % number)
        try:
            assert s3.get_object(Bucket="busy", Key=key)["Body"].read() == b"%d" % number
        except s3.exceptions.NoSuchKey:
            pass  # a second has passed
    eventually(lambda: keys(s3, "busy") == [])
