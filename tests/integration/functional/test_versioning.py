"""Buckets that keep versions, by boto3."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OPEN, denied, put, statement
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("postgres", "tree")

UNKNOWN = "0" * 28
"""An id that a version could have."""


def refused(call: Any, *expected: object, **arguments: Any) -> dict[str, str]:
    """The call ends so (status, code); the fields of its head."""
    with pytest.raises(ClientError) as error:
        call(**arguments)
    assert code_of(error) == expected
    fields: dict[str, str] = error.value.response["ResponseMetadata"]["HTTPHeaders"]
    return fields


def switch(s3: Any, bucket: str, status: str) -> None:
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})


@pytest.fixture
def versioned(s3: Any, bucket: str, request: pytest.FixtureRequest) -> str:
    """A bucket that keeps versions."""
    if "tree" in request.node.name:
        configuration = {"Status": "Enabled"}
        refused(s3.put_bucket_versioning, 501, "NotImplemented", Bucket=bucket, VersioningConfiguration=configuration)
        pytest.skip("a plain file has no versions")
    switch(s3, bucket, "Enabled")
    return bucket


def put_all(s3: Any, bucket: str, *bodies: bytes, key: str = "k") -> list[str]:
    """The ids of versions with these bodies."""
    return [s3.put_object(Bucket=bucket, Key=key, Body=body)["VersionId"] for body in bodies]


def listed(s3: Any, bucket: str, **arguments: Any) -> list[tuple[str, str, bool, bool]]:
    """Key, id, whether it is the latest, and whether it is a delete marker, in the order of the document."""
    found = s3.list_object_versions(Bucket=bucket, **arguments)
    entries = [(one, False) for one in found.get("Versions", [])]
    entries += [(one, True) for one in found.get("DeleteMarkers", [])]
    entries.sort(key=lambda one: one[0]["LastModified"], reverse=True)
    entries.sort(key=lambda one: one[0]["Key"])
    return [(one["Key"], one["VersionId"], one["IsLatest"], marker) for one, marker in entries]


def test_status_is_what_was_put(s3: Any, versioned: str) -> None:
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Enabled"
    switch(s3, versioned, "Suspended")
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Suspended"
    call = s3.put_bucket_versioning
    for configuration, *expected in (
        ({}, 400, "IllegalVersioningConfigurationException"),
        ({"Status": "Off"}, 400, "MalformedXML"),
        ({"Status": "Enabled", "MFADelete": "Enabled"}, 403, "AccessDenied"),
        ({"Status": "Enabled", "MFADelete": "Perhaps"}, 400, "MalformedXML"),
    ):
        refused(call, *expected, Bucket=versioned, VersioningConfiguration=configuration)
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Suspended"
    call(Bucket=versioned, VersioningConfiguration={"Status": "Enabled", "MFADelete": "Disabled"})
    assert s3.get_bucket_versioning(Bucket=versioned)["Status"] == "Enabled"


def test_each_version_is_read_by_its_id(s3: Any, versioned: str) -> None:
    ids = put_all(s3, versioned, b"first", b"second", b"third")
    assert len(set(ids)) == 3
    for version_id, body in zip(ids, (b"first", b"second", b"third"), strict=True):
        found = s3.get_object(Bucket=versioned, Key="k", VersionId=version_id)
        assert (found["Body"].read(), found["VersionId"]) == (body, version_id)
        assert s3.head_object(Bucket=versioned, Key="k", VersionId=version_id)["ContentLength"] == len(body)
        attributes = s3.get_object_attributes(
            Bucket=versioned, Key="k", VersionId=version_id, ObjectAttributes=["ObjectSize"]
        )
        assert (attributes["ObjectSize"], attributes["VersionId"]) == (len(body), version_id)
    found = s3.get_object(Bucket=versioned, Key="k", Range="bytes=1-2")
    assert (found["Body"].read(), found["VersionId"]) == (b"hi", ids[2])
    assert s3.get_object(Bucket=versioned, Key="k", VersionId=ids[0], Range="bytes=1-2")["Body"].read() == b"ir"
    assert listed(s3, versioned) == [("k", version_id, version_id == ids[2], False) for version_id in reversed(ids)]
    shown = s3.list_object_versions(Bucket=versioned)["Versions"]
    assert [one["Size"] for one in shown] == [5, 6, 5]
    assert all(one["ETag"] and one["StorageClass"] == "STANDARD" and one["Owner"]["ID"] for one in shown)


def test_ids_that_no_version_has(s3: Any, versioned: str, bucket: str) -> None:
    (version_id,) = put_all(s3, versioned, b"body")
    for call in (s3.get_object, s3.get_object_acl):
        refused(call, 404, "NoSuchVersion", Bucket=versioned, Key="k", VersionId=UNKNOWN)
        refused(call, 404, "NoSuchVersion", Bucket=versioned, Key="other", VersionId=version_id)
        refused(call, 404, "NoSuchVersion", Bucket=versioned, Key="k", VersionId="null")
        refused(call, 400, "InvalidArgument", Bucket=versioned, Key="k", VersionId="no-version")
    refused(s3.head_object, 404, "404", Bucket=versioned, Key="k", VersionId=UNKNOWN)
    refused(s3.head_object, 400, "400", Bucket=versioned, Key="k", VersionId="no-version")
    refused(s3.delete_object, 400, "InvalidArgument", Bucket=versioned, Key="k", VersionId="no-version")
    s3.delete_object(Bucket=versioned, Key="k", VersionId=UNKNOWN)
    entries = [{"Key": "k", "VersionId": "no-version"}, {"Key": "k", "VersionId": UNKNOWN}]
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": entries})
    assert [one["Code"] for one in answer["Errors"]] == ["NoSuchVersion"]
    assert [one["VersionId"] for one in answer["Deleted"]] == [UNKNOWN]
    source = {"Bucket": versioned, "Key": "k", "VersionId": "no-version"}
    refused(s3.copy_object, 400, "InvalidArgument", Bucket=versioned, Key="copy", CopySource=source)
    assert listed(s3, versioned) == [("k", version_id, True, False)]


def test_what_writes_takes_no_version_id(s3: Any, gateway: Gateway, versioned: str) -> None:
    (version_id,) = put_all(s3, versioned, b"body")
    upload = s3.create_multipart_upload(Bucket=versioned, Key="k")["UploadId"]
    for operation, arguments in (
        ("put_object", {}),
        ("upload_part", {"UploadId": upload, "PartNumber": 1}),
        ("list_parts", {"UploadId": upload}),
    ):
        names = {"Bucket": versioned, "Key": "k", **arguments}
        s3.meta.events.register_first("before-sign.s3", add_version, unique_id="add")
        try:
            refused(getattr(s3, operation), 400, "InvalidArgument", **names)
        finally:
            s3.meta.events.unregister("before-sign.s3", unique_id="add")
    assert listed(s3, versioned) == [("k", version_id, True, False)]


def add_version(request: Any, **_: Any) -> None:
    request.url += ("&" if "?" in request.url else "?") + "versionId=null"


def test_a_bucket_without_versions_knows_only_null(s3: Any, bucket: str) -> None:
    answer = s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    assert "VersionId" not in answer
    assert "VersionId" not in s3.get_object(Bucket=bucket, Key="k", VersionId="null")
    for call in (s3.get_object, s3.delete_object):
        refused(call, 400, "InvalidArgument", Bucket=bucket, Key="k", VersionId=UNKNOWN)
    assert listed(s3, bucket) == [("k", "null", True, False)]


def test_a_deleted_object_is_marked(s3: Any, gateway: Gateway, versioned: str) -> None:
    (version_id,) = put_all(s3, versioned, b"body")
    answer = s3.delete_object(Bucket=versioned, Key="k")
    marker = answer["VersionId"]
    assert answer["DeleteMarker"]
    for call, code in ((s3.get_object, "NoSuchKey"), (s3.head_object, "404"), (s3.get_object_acl, "NoSuchKey")):
        fields = refused(call, 404, code, Bucket=versioned, Key="k")
        assert (fields["x-amz-delete-marker"], fields["x-amz-version-id"]) == ("true", marker)
    for call, code in ((s3.get_object, "MethodNotAllowed"), (s3.head_object, "405")):
        fields = refused(call, 405, code, Bucket=versioned, Key="k", VersionId=marker)
        assert (fields["x-amz-delete-marker"], fields["allow"]) == ("true", "DELETE")
        assert fields["last-modified"]
    refused(s3.put_object_acl, 405, "MethodNotAllowed", Bucket=versioned, Key="k", ACL="private")
    refused(s3.copy_object, 404, "NoSuchKey", Bucket=versioned, Key="c", CopySource={"Bucket": versioned, "Key": "k"})
    source = {"Bucket": versioned, "Key": "k", "VersionId": marker}
    refused(s3.copy_object, 400, "InvalidRequest", Bucket=versioned, Key="c", CopySource=source)
    assert s3.get_object(Bucket=versioned, Key="k", VersionId=version_id)["Body"].read() == b"body"
    assert "Contents" not in s3.list_objects_v2(Bucket=versioned)
    assert listed(s3, versioned) == [("k", marker, True, True), ("k", version_id, False, False)]
    refused(s3.delete_bucket, 409, "BucketNotEmpty", Bucket=versioned)
    answer = s3.delete_object(Bucket=versioned, Key="k", VersionId=marker)
    assert (answer["VersionId"], answer["DeleteMarker"]) == (marker, True)
    assert s3.get_object(Bucket=versioned, Key="k")["VersionId"] == version_id
    answer = s3.delete_object(Bucket=versioned, Key="k", VersionId=version_id)
    assert answer["VersionId"] == version_id
    assert "DeleteMarker" not in answer
    s3.delete_bucket(Bucket=versioned)


def test_while_suspended_versions_are_null(s3: Any, bucket: str, versioned: str) -> None:
    (kept,) = put_all(s3, versioned, b"kept")
    switch(s3, versioned, "Suspended")
    source = {"Bucket": versioned, "Key": "k", "VersionId": kept}
    answer = s3.copy_object(Bucket=versioned, Key="k", CopySource=source)
    assert "VersionId" not in answer
    assert answer["CopySourceVersionId"] == kept
    assert "VersionId" not in s3.put_object(Bucket=versioned, Key="k", Body=b"null")
    assert s3.get_object(Bucket=versioned, Key="k")["VersionId"] == "null"
    answer = s3.delete_object(Bucket=versioned, Key="k")
    assert (answer["VersionId"], answer["DeleteMarker"]) == ("null", True)
    assert listed(s3, versioned) == [("k", "null", True, True), ("k", kept, False, False)]
    refused(s3.get_object, 405, "MethodNotAllowed", Bucket=versioned, Key="k", VersionId="null")
    answer = s3.delete_object(Bucket=versioned, Key="k", VersionId="null")
    assert (answer["VersionId"], answer["DeleteMarker"]) == ("null", True)
    assert s3.get_object(Bucket=versioned, Key="k")["Body"].read() == b"kept"


def test_what_was_there_before_is_null(s3: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"before")
    request.getfixturevalue("versioned")
    assert s3.head_object(Bucket=bucket, Key="k")["VersionId"] == "null"
    (version_id,) = put_all(s3, bucket, b"after")
    assert s3.get_object(Bucket=bucket, Key="k", VersionId="null")["Body"].read() == b"before"
    assert listed(s3, bucket) == [("k", version_id, True, False), ("k", "null", False, False)]
    s3.delete_object(Bucket=bucket, Key="k", VersionId="null")
    refused(s3.get_object, 404, "NoSuchVersion", Bucket=bucket, Key="k", VersionId="null")


def test_conditions_look_at_the_current_version(s3: Any, versioned: str) -> None:
    etag = s3.put_object(Bucket=versioned, Key="k", Body=b"1")["ETag"]
    refused(s3.put_object, 412, "PreconditionFailed", Bucket=versioned, Key="k", Body=b"2", IfNoneMatch="*")
    s3.put_object(Bucket=versioned, Key="k", Body=b"2", IfMatch=etag)
    refused(s3.put_object, 412, "PreconditionFailed", Bucket=versioned, Key="k", Body=b"3", IfMatch=etag)
    s3.delete_object(Bucket=versioned, Key="k")
    refused(s3.put_object, 404, "NoSuchKey", Bucket=versioned, Key="k", Body=b"3", IfMatch=etag)
    s3.put_object(Bucket=versioned, Key="k", Body=b"3", IfNoneMatch="*")
    assert len(listed(s3, versioned)) == 4


def test_copies_of_a_version(s3: Any, versioned: str) -> None:
    first, second = put_all(s3, versioned, b"first", b"second")
    source = {"Bucket": versioned, "Key": "k", "VersionId": first}
    answer = s3.copy_object(Bucket=versioned, Key="copy", CopySource=source)
    assert answer["CopySourceVersionId"] == first
    assert s3.get_object(Bucket=versioned, Key="copy", VersionId=answer["VersionId"])["Body"].read() == b"first"
    answer = s3.copy_object(Bucket=versioned, Key="copy", CopySource={"Bucket": versioned, "Key": "k"})
    assert answer["CopySourceVersionId"] == second
    restored = s3.copy_object(Bucket=versioned, Key="k", CopySource=source)  # an old version made the newest
    for version_id in (first, second):
        s3.delete_object(Bucket=versioned, Key="k", VersionId=version_id)
    found = s3.get_object(Bucket=versioned, Key="k")
    assert (found["Body"].read(), found["VersionId"]) == (b"first", restored["VersionId"])
    assert len(listed(s3, versioned)) == 3


def test_an_upload_makes_a_version_and_takes_parts_of_others(s3: Any, versioned: str) -> None:
    old, _ = put_all(s3, versioned, b"0123456789", b"newer")
    upload = {"Bucket": versioned, "Key": "k"}
    upload["UploadId"] = s3.create_multipart_upload(**upload)["UploadId"]
    source = {"Bucket": versioned, "Key": "k", "VersionId": old}
    part = s3.upload_part_copy(**upload, PartNumber=1, CopySource=source, CopySourceRange="bytes=2-5")
    assert part["CopySourceVersionId"] == old
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]}
    made = s3.complete_multipart_upload(**upload, MultipartUpload=parts)
    assert s3.complete_multipart_upload(**upload, MultipartUpload=parts)["VersionId"] == made["VersionId"]
    put_all(s3, versioned, b"newest")
    assert s3.complete_multipart_upload(**upload, MultipartUpload=parts)["VersionId"] == made["VersionId"]
    assert s3.get_object(Bucket=versioned, Key="k", VersionId=made["VersionId"])["Body"].read() == b"2345"
    assert len(listed(s3, versioned)) == 4


def test_many_are_deleted_each_as_it_says(s3: Any, versioned: str) -> None:
    ids = {key: put_all(s3, versioned, b"1", b"2", key=key) for key in ("a", "b")}
    entries = [{"Key": "a", "VersionId": ids["a"][0]}, {"Key": "b"}, {"Key": "never"}]
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": entries})["Deleted"]
    by_key = {one["Key"]: one for one in answer}
    assert by_key["a"] == {"Key": "a", "VersionId": ids["a"][0]}
    for key in ("b", "never"):
        assert by_key[key]["DeleteMarker"]
        assert "VersionId" not in by_key[key]
    marker = by_key["b"]["DeleteMarkerVersionId"]
    assert listed(s3, versioned, Prefix="b")[0] == ("b", marker, True, True)
    answer = s3.delete_objects(Bucket=versioned, Delete={"Objects": [{"Key": "b", "VersionId": marker}]})["Deleted"]
    assert answer == [{"Key": "b", "VersionId": marker, "DeleteMarker": True, "DeleteMarkerVersionId": marker}]
    assert s3.get_object(Bucket=versioned, Key="b")["VersionId"] == ids["b"][1]


def test_listings_go_on_where_they_ended(s3: Any, versioned: str) -> None:
    expected = []
    for key in ("a", "b/1", "b/2", "c d", "e"):
        ids = put_all(s3, versioned, b"1", b"2", key=key)
        marker = s3.delete_object(Bucket=versioned, Key=key)["VersionId"]
        expected += [(key, version_id) for version_id in (marker, *reversed(ids))]
    paginator = s3.get_paginator("list_object_versions")
    for size in (1, 2, 4, 1000):
        found = []
        for page in paginator.paginate(Bucket=versioned, PaginationConfig={"PageSize": size}):
            entries = page.get("Versions", []) + page.get("DeleteMarkers", [])
            assert len(entries) <= size
            found += [(one["Key"], one["VersionId"]) for one in entries]
        assert sorted(found) == sorted(expected)
    encoded = s3.list_object_versions(Bucket=versioned, Prefix="c ", EncodingType="url")
    assert {one["Key"] for one in encoded["Versions"]} == {"c%20d"}
    page = s3.list_object_versions(Bucket=versioned, Delimiter="/", MaxKeys=4)
    assert [one["Prefix"] for one in page["CommonPrefixes"]] == ["b/"]
    assert page["NextKeyMarker"] == "b/"
    assert "NextVersionIdMarker" not in page
    page = s3.list_object_versions(Bucket=versioned, Delimiter="/", KeyMarker="b/")
    assert {one["Key"] for one in page["Versions"]} == {"c d", "e"}
    key, version_id = expected[1]
    page = s3.list_object_versions(Bucket=versioned, KeyMarker=key, VersionIdMarker=version_id, MaxKeys=1)
    assert [(one["Key"], one["VersionId"]) for one in page["Versions"]] == expected[2:3]
    refused(s3.list_object_versions, 400, "InvalidArgument", Bucket=versioned, VersionIdMarker=version_id)
    refused(s3.list_object_versions, 400, "InvalidArgument", Bucket=versioned, KeyMarker="a", VersionIdMarker="x")
    assert "Versions" not in s3.list_object_versions(Bucket=versioned, MaxKeys=0)


def test_the_document_has_versions_and_markers_in_their_order(s3: Any, gateway: Gateway, versioned: str) -> None:
    put_all(s3, versioned, b"1")
    s3.delete_object(Bucket=versioned, Key="k")
    put_all(s3, versioned, b"2")
    url = s3.generate_presigned_url("list_object_versions", {"Bucket": versioned})
    text = httpx.get(url).text
    names = [text.find("<Version>"), text.find("<DeleteMarker>"), text.rfind("<Version>")]
    assert names == sorted(names)
    assert names[0] > 0


def test_acls_are_of_versions(s3: Any, versioned: str, other: Any) -> None:
    rules = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    s3.put_bucket_ownership_controls(Bucket=versioned, OwnershipControls=rules)
    s3.delete_public_access_block(Bucket=versioned)
    first, second = put_all(s3, versioned, b"first", b"second")
    s3.put_object_acl(Bucket=versioned, Key="k", VersionId=first, ACL="public-read")
    assert other.get_object(Bucket=versioned, Key="k", VersionId=first)["Body"].read() == b"first"
    for arguments in ({}, {"VersionId": second}):
        denied(other.get_object, Bucket=versioned, Key="k", **arguments)
    s3.put_object_acl(Bucket=versioned, Key="k", ACL="public-read")
    assert other.get_object(Bucket=versioned, Key="k")["Body"].read() == b"second"
    assert [one[1] for one in listed(s3, versioned)] == [second, first]
    assert len(s3.get_object_acl(Bucket=versioned, Key="k", VersionId=first)["Grants"]) == 2
    marker = s3.delete_object(Bucket=versioned, Key="k")["VersionId"]
    refused(s3.get_object, 405, "MethodNotAllowed", Bucket=versioned, Key="k", VersionId=marker)
    denied(other.get_object, Bucket=versioned, Key="k", VersionId=marker)


def test_policies_tell_versions_apart(s3: Any, versioned: str, other: Any) -> None:
    s3.put_public_access_block(Bucket=versioned, PublicAccessBlockConfiguration=OPEN)
    first, second = put_all(s3, versioned, b"first", b"second")
    objects = f"arn:aws:s3:::{versioned}/*"
    everybody: dict[str, Any] = {"Principal": {"AWS": "*"}, "Resource": objects}
    put(s3, versioned, statement(versioned, Action="s3:GetObject", **everybody))
    assert other.get_object(Bucket=versioned, Key="k")["Body"].read() == b"second"
    denied(other.get_object, Bucket=versioned, Key="k", VersionId=second)
    only = {"StringEquals": {"s3:VersionId": first}}
    put(s3, versioned, statement(versioned, Action="s3:GetObjectVersion", Condition=only, **everybody))
    assert other.get_object(Bucket=versioned, Key="k", VersionId=first)["Body"].read() == b"first"
    denied(other.get_object, Bucket=versioned, Key="k", VersionId=second)
    denied(other.get_object, Bucket=versioned, Key="k")
    put(s3, versioned, statement(versioned, Action="s3:DeleteObject", **everybody))
    denied(other.delete_object, Bucket=versioned, Key="k", VersionId=first)
    assert other.delete_object(Bucket=versioned, Key="k")["DeleteMarker"]
    for call, action in (
        (other.list_object_versions, "s3:ListBucketVersions"),
        (other.get_bucket_versioning, "s3:GetBucketVersioning"),
    ):
        denied(call, Bucket=versioned)
        allowed = {"Principal": {"AWS": "*"}, "Resource": f"arn:aws:s3:::{versioned}"}
        put(s3, versioned, statement(versioned, Action=action, **allowed))
        call(Bucket=versioned)
