"""Ownership controls and access control lists, enforced."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OPEN, denied, put, statement
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("tree")

ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers"


def own(s3: Any, bucket: str, ownership: str) -> None:
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls={"Rules": [{"ObjectOwnership": ownership}]})


def allow(call: Any, expected: bool, **arguments: Any) -> None:
    if expected:
        call(**arguments)
    else:
        denied(call, **arguments)


def test_an_empty_header_is_no_acl(s3: Any, bucket: str) -> None:
    """AWS ignores it (https://github.com/open-io/swift3/pull/90), and s3fs of Python sent it with every write."""
    s3.put_object(Bucket=bucket, Key="k", Body=b"body", ACL="")
    s3.copy_object(Bucket=bucket, Key="c", CopySource=f"{bucket}/k", ACL="")
    s3.abort_multipart_upload(
        Bucket=bucket, Key="m", UploadId=s3.create_multipart_upload(Bucket=bucket, Key="m", ACL="")["UploadId"]
    )
    s3.create_bucket(Bucket=f"{bucket}-made", ACL="")
    with pytest.raises(ClientError) as error:
        s3.put_object(Bucket=bucket, Key="k", ACL="nobody")
    assert code_of(error) == (400, "InvalidArgument")


@pytest.fixture
def writers(s3: Any, bucket: str, request: pytest.FixtureRequest) -> str:
    """A bucket whose objects are their writers', of which nothing is blocked."""
    if "tree" in request.node.name:
        with pytest.raises(ClientError) as error:
            own(s3, bucket, "ObjectWriter")
        assert code_of(error) == (501, "NotImplemented")
        pytest.skip("plain files have no ACLs")
    own(s3, bucket, "ObjectWriter")
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    return bucket


def grants(found: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["Grantee"].get("ID") or one["Grantee"]["URI"], one["Permission"]) for one in found["Grants"]}


def test_buckets_are_their_owners_by_default(s3: Any, bucket: str, other: Any) -> None:
    found = s3.get_bucket_ownership_controls(Bucket=bucket)["OwnershipControls"]
    assert found == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    s3.put_object(Bucket=bucket, Key="k", ACL="bucket-owner-full-control")
    for call, arguments in (
        (s3.put_object, {"Key": "n", "ACL": "public-read"}),
        (s3.put_object, {"Key": "n", "GrantRead": f'uri="{ALL_USERS}"'}),
        (s3.copy_object, {"Key": "n", "CopySource": f"{bucket}/k", "ACL": "public-read"}),
        (s3.create_multipart_upload, {"Key": "n", "ACL": "authenticated-read"}),
        (s3.put_bucket_acl, {"ACL": "public-read"}),
        (s3.put_object_acl, {"Key": "k", "ACL": "public-read"}),
        (s3.put_object_acl, {"Key": "k", "GrantRead": "id=other-id"}),
    ):
        with pytest.raises(ClientError) as error:
            call(Bucket=bucket, **arguments)
        assert code_of(error) == (400, "AccessControlListNotSupported")
    with pytest.raises(ClientError) as error:
        s3.head_object(Bucket=bucket, Key="n")
    assert code_of(error)[0] == 404


def test_life_of_ownership_controls(s3: Any, writers: str) -> None:
    for ownership in ("BucketOwnerPreferred", "ObjectWriter"):
        own(s3, writers, ownership)
        found = s3.get_bucket_ownership_controls(Bucket=writers)["OwnershipControls"]
        assert found == {"Rules": [{"ObjectOwnership": ownership}]}
    s3.put_bucket_acl(Bucket=writers, ACL="public-read")
    with pytest.raises(ClientError) as error:
        own(s3, writers, "BucketOwnerEnforced")
    assert code_of(error) == (400, "InvalidBucketAclWithObjectOwnership")
    s3.put_bucket_acl(Bucket=writers, ACL="private")
    own(s3, writers, "BucketOwnerEnforced")
    s3.delete_bucket_ownership_controls(Bucket=writers)
    with pytest.raises(ClientError) as error:
        s3.get_bucket_ownership_controls(Bucket=writers)
    assert code_of(error) == (404, "OwnershipControlsNotFoundError")


@pytest.mark.parametrize(
    ("acl", "account", "anonymous"),
    [
        ("private", "", ""),
        ("public-read", "r", "r"),
        ("public-read-write", "rw", "rw"),
        ("authenticated-read", "r", ""),
    ],
)
def test_canned_acls_of_buckets(
    s3: Any, other: Any, writers: str, gateway: Gateway, acl: str, account: str, anonymous: str
) -> None:
    s3.put_object(Bucket=writers, Key="k")
    s3.put_bucket_acl(Bucket=writers, ACL=acl)
    place = f"{gateway.endpoint}/{writers}"
    allow(other.list_objects_v2, "r" in account, Bucket=writers)
    allow(other.put_object, "w" in account, Bucket=writers, Key="theirs")
    assert (httpx.get(place).status_code == 200) is ("r" in anonymous)
    assert (httpx.put(f"{place}/nobodys", content=b"x").status_code == 200) is ("w" in anonymous)
    denied(other.get_object, Bucket=writers, Key="k")
    denied(other.get_bucket_acl, Bucket=writers)
    denied(other.put_bucket_acl, Bucket=writers, ACL="public-read")
    allow(other.delete_object, "w" in account, Bucket=writers, Key="k")


@pytest.mark.parametrize(
    ("acl", "account", "anonymous"),
    [
        ("private", False, False),
        ("public-read", True, True),
        ("public-read-write", True, True),
        ("authenticated-read", True, False),
        ("bucket-owner-full-control", False, False),
    ],
)
def test_canned_acls_of_objects(
    s3: Any, other: Any, writers: str, gateway: Gateway, acl: str, account: bool, anonymous: bool
) -> None:
    place = f"{gateway.endpoint}/{writers}/k"
    for change in ("put", "acl", "copy", "upload"):
        if change == "put":
            s3.put_object(Bucket=writers, Key="k", Body=b"x" * 100, ACL=acl)
        elif change == "acl":
            s3.put_object(Bucket=writers, Key="k", Body=b"x")
            before = s3.head_object(Bucket=writers, Key="k")
            s3.put_object_acl(Bucket=writers, Key="k", ACL=acl)
            after = s3.head_object(Bucket=writers, Key="k")
            assert (before["ETag"], before["LastModified"]) == (after["ETag"], after["LastModified"])
        elif change == "copy":
            s3.put_object(Bucket=writers, Key="source", Body=b"x", ACL="public-read-write")
            s3.copy_object(Bucket=writers, Key="k", CopySource=f"{writers}/source", ACL=acl)
        else:
            upload = s3.create_multipart_upload(Bucket=writers, Key="k", ACL=acl)["UploadId"]
            part = {"Bucket": writers, "Key": "k", "UploadId": upload}
            etag = s3.upload_part(PartNumber=1, Body=b"x", **part)["ETag"]
            s3.complete_multipart_upload(MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": etag}]}, **part)
        for call in (other.get_object, other.head_object):
            allow(call, account, Bucket=writers, Key="k")
        assert (httpx.get(place).status_code == 200) is anonymous
        denied(other.get_object_acl, Bucket=writers, Key="k")
        denied(other.put_object_acl, Bucket=writers, Key="k", ACL="public-read")
        denied(other.put_object, Bucket=writers, Key="k")
        denied(other.delete_object, Bucket=writers, Key="k")


def test_an_acl_is_not_copied_with_the_object(s3: Any, other: Any, writers: str) -> None:
    s3.put_object(Bucket=writers, Key="k", ACL="public-read")
    s3.copy_object(Bucket=writers, Key="copy", CopySource=f"{writers}/k")
    denied(other.get_object, Bucket=writers, Key="copy")
    s3.put_object(Bucket=writers, Key="k")
    denied(other.get_object, Bucket=writers, Key="k")


def test_grants(s3: Any, other: Any, writers: str) -> None:
    owner = s3.get_bucket_acl(Bucket=writers)["Owner"]["ID"]
    s3.put_object(Bucket=writers, Key="k", GrantReadACP="id=other-id", GrantFullControl=f'id="{owner}"')
    found = other.get_object_acl(Bucket=writers, Key="k")
    assert grants(found) == {(owner, "FULL_CONTROL"), ("other-id", "READ_ACP")}
    assert found["Owner"]["ID"] == owner
    denied(other.get_object, Bucket=writers, Key="k")
    policy = {
        "Owner": {"ID": owner},
        "Grants": [
            {"Grantee": {"Type": "CanonicalUser", "ID": owner}, "Permission": "FULL_CONTROL"},
            {"Grantee": {"Type": "CanonicalUser", "ID": "other-id"}, "Permission": "WRITE_ACP"},
            {"Grantee": {"Type": "Group", "URI": ALL_USERS}, "Permission": "READ"},
        ],
    }
    s3.put_object_acl(Bucket=writers, Key="k", AccessControlPolicy=policy)
    other.get_object(Bucket=writers, Key="k")
    denied(other.get_object_acl, Bucket=writers, Key="k")
    other.put_object_acl(Bucket=writers, Key="k", GrantRead="id=other-id")
    other.get_object(Bucket=writers, Key="k")
    s3.get_object(Bucket=writers, Key="k")  # its owner, whatever the ACL says
    denied(other.put_object_acl, Bucket=writers, Key="k", ACL="public-read")
    s3.put_bucket_acl(Bucket=writers, GrantRead="id=other-id", GrantReadACP="id=other-id")
    other.list_objects_v2(Bucket=writers)
    assert grants(other.get_bucket_acl(Bucket=writers)) == {("other-id", "READ"), ("other-id", "READ_ACP")}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"ACL": "public-ready"}, "InvalidArgument"),
        ({"GrantRead": "id=nobody"}, "InvalidArgument"),
        ({"GrantRead": "uri=http://example.com/"}, "InvalidArgument"),
        ({"GrantRead": "name=x"}, "InvalidArgument"),
        ({"GrantRead": "emailAddress=nobody@example.com"}, "UnresolvableGrantByEmailAddress"),
        ({"ACL": "private", "GrantRead": "id=other-id"}, "InvalidRequest"),
        (
            {"AccessControlPolicy": {"Grants": [{"Grantee": {"Type": "Group"}, "Permission": "READ"}]}},
            "MalformedACLError",
        ),
        ({"AccessControlPolicy": {"Owner": {"ID": "other-id"}, "Grants": []}}, "AccessDenied"),
    ],
)
def test_wrong_acls(s3: Any, other: Any, writers: str, options: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_bucket_acl(Bucket=writers, **options)
    assert error.value.response["Error"]["Code"] == code


def test_objects_are_their_writers(s3: Any, other: Any, writers: str) -> None:
    put(s3, writers, statement(writers, "s3:PutObject", "s3:PutObjectAcl", principal={"CanonicalUser": "other-id"}))
    other.put_object(Bucket=writers, Key="theirs", Body=b"x")
    other.get_object(Bucket=writers, Key="theirs")
    assert other.get_object_acl(Bucket=writers, Key="theirs")["Owner"]["ID"] == "other-id"
    for call in (s3.get_object, s3.get_object_acl):
        denied(call, Bucket=writers, Key="theirs")
    denied(s3.copy_object, Bucket=writers, Key="copy", CopySource=f"{writers}/theirs")
    other.put_object(Bucket=writers, Key="theirs", Body=b"x", ACL="bucket-owner-full-control")
    s3.get_object(Bucket=writers, Key="theirs")
    assert s3.get_object_acl(Bucket=writers, Key="theirs")["Owner"]["ID"] == "other-id"
    own(s3, writers, "BucketOwnerPreferred")
    other.put_object(Bucket=writers, Key="given", Body=b"x", ACL="bucket-owner-full-control")
    assert s3.get_object_acl(Bucket=writers, Key="given")["Owner"]["ID"] != "other-id"
    denied(other.get_object, Bucket=writers, Key="given")
    # enforced: all is the bucket owner's, as it was before it was said
    other.put_object(Bucket=writers, Key="theirs", Body=b"x")
    own(s3, writers, "BucketOwnerEnforced")
    s3.get_object(Bucket=writers, Key="theirs")
    denied(other.get_object, Bucket=writers, Key="theirs")
    # and the bucket's owner may always remove what is in it
    own(s3, writers, "ObjectWriter")
    s3.delete_object(Bucket=writers, Key="theirs")


def test_f67_an_acl_needs_its_own_right(s3: Any, other: Any, writers: str) -> None:
    put(s3, writers, statement(writers, "s3:PutObject", principal={"CanonicalUser": "other-id"}))
    other.put_object(Bucket=writers, Key="k")
    for options in ({"ACL": "public-read"}, {"GrantRead": "id=other-id"}):
        denied(other.put_object, Bucket=writers, Key="n", **options)
        denied(other.create_multipart_upload, Bucket=writers, Key="n", **options)
    put(s3, writers, statement(writers, "s3:PutObjectAcl", Effect="Deny"))
    denied(s3.put_object, Bucket=writers, Key="n", ACL="public-read")
    s3.put_object(Bucket=writers, Key="n")


def test_f65_deny_beats_an_acl(s3: Any, other: Any, writers: str) -> None:
    s3.put_object(Bucket=writers, Key="k", ACL="public-read")
    other.get_object(Bucket=writers, Key="k")
    put(s3, writers, statement(writers, "s3:GetObject", Effect="Deny"))
    for who in (other, s3):
        denied(who.get_object, Bucket=writers, Key="k")


def test_public_acls_are_blocked_and_ignored(s3: Any, other: Any, writers: str, gateway: Gateway) -> None:
    s3.put_bucket_acl(Bucket=writers, ACL="public-read")
    s3.put_object(Bucket=writers, Key="k", ACL="public-read")
    s3.put_object(Bucket=writers, Key="named", GrantRead="id=other-id")
    s3.put_public_access_block(Bucket=writers, PublicAccessBlockConfiguration=OPEN | {"IgnorePublicAcls": True})
    denied(other.get_object, Bucket=writers, Key="k")
    denied(other.list_objects_v2, Bucket=writers)
    assert httpx.get(f"{gateway.endpoint}/{writers}/k").status_code == 403
    other.get_object(Bucket=writers, Key="named")
    s3.put_public_access_block(Bucket=writers, PublicAccessBlockConfiguration=OPEN | {"BlockPublicAcls": True})
    for call, arguments in (
        (s3.put_bucket_acl, {}),
        (s3.put_object, {"Key": "n"}),
        (s3.put_object_acl, {"Key": "k"}),
        (s3.copy_object, {"Key": "n", "CopySource": f"{writers}/k"}),
        (s3.create_multipart_upload, {"Key": "n"}),
    ):
        denied(call, Bucket=writers, ACL="public-read", **arguments)
    s3.put_object(Bucket=writers, Key="n", ACL="private")


def test_ownership_and_acl_of_a_new_bucket(s3: Any, other: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    name = bucket + "-new"
    for options, code in (
        ({"ACL": "public-read"}, "InvalidBucketAclWithObjectOwnership"),
        ({"GrantRead": "id=other-id"}, "InvalidBucketAclWithObjectOwnership"),
        ({"ObjectOwnership": "Nobody"}, "InvalidArgument"),
        ({"ObjectOwnership": "ObjectWriter", "ACL": "public-read"}, "InvalidBucketAclWithBlockPublicAccessError"),
    ):
        with pytest.raises(ClientError) as error:
            s3.create_bucket(Bucket=name, **options)
        assert error.value.response["Error"]["Code"] in (code, "NotImplemented")
        assert error.value.response["Error"]["Code"] == code or "tree" in request.node.name
    if "tree" in request.node.name:
        return
    s3.create_bucket(Bucket=name, ObjectOwnership="ObjectWriter", GrantRead="id=other-id")
    assert s3.get_bucket_ownership_controls(Bucket=name)["OwnershipControls"]["Rules"] == [
        {"ObjectOwnership": "ObjectWriter"}
    ]
    other.list_objects_v2(Bucket=name)
    denied(other.put_object, Bucket=name, Key="k")
