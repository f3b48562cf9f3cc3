"""Who has no right to a source cannot copy it, whatever way he goes and wherever his other rights come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.identities import User, assume, policy, role
from tests.integration.functional.test_policy import put, statement
from tests.support.gateway import Gateway

pytestmark = pytest.mark.place("tree")

BODY = b"what only its owner may read"


class Ways:
    """Every operation that reads a source: each must be refused, or must give the source's bytes."""

    def __init__(self, who: Any, source: str, target: str) -> None:
        self.who, self.source, self.target = who, source, target

    def copy_object(self, version: str = "") -> None:
        self.who.copy_object(Bucket=self.target, Key="stolen", CopySource=f"{self.source}/secret{version}")

    def copy_object_with_other_metadata(self, version: str = "") -> None:
        self.who.copy_object(
            Bucket=self.target,
            Key="stolen",
            CopySource=f"{self.source}/secret{version}",
            MetadataDirective="REPLACE",
            Metadata={"a": "b"},
        )

    def copy_object_to_have_its_checksum(self, version: str = "") -> None:
        self.who.copy_object(
            Bucket=self.target, Key="stolen", CopySource=f"{self.source}/secret{version}", ChecksumAlgorithm="SHA256"
        )

    def copy_object_of_an_etag(self, version: str = "") -> None:
        self.who.copy_object(
            Bucket=self.target,
            Key="stolen",
            CopySource=f"{self.source}/secret{version}",
            CopySourceIfNoneMatch='"00000000000000000000000000000000"',
        )

    def upload_part_copy(self, version: str = "", more: dict[str, str] | None = None) -> None:
        upload = self.who.create_multipart_upload(Bucket=self.target, Key="stolen")["UploadId"]
        named = {"Bucket": self.target, "Key": "stolen", "UploadId": upload}
        try:
            part = self.who.upload_part_copy(
                PartNumber=1, CopySource=f"{self.source}/secret{version}", **named, **(more or {})
            )
        except ClientError:
            self.who.abort_multipart_upload(**named)
            raise
        parts = [{"PartNumber": 1, "ETag": part["CopyPartResult"]["ETag"]}]
        self.who.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})

    def upload_part_copy_of_a_range(self, version: str = "") -> None:
        self.upload_part_copy(version, {"CopySourceRange": f"bytes=0-{len(BODY) - 1}"})


WAYS = [name for name in vars(Ways) if not name.startswith("_")]


def check(ways: Ways, s3: Any, name: str, *, allowed: bool, version: str = "") -> None:
    """The way is open or closed; what it brought to the target is removed."""
    way: Callable[[str], None] = getattr(ways, name)
    if allowed:
        way(version)
        assert s3.get_object(Bucket=ways.target, Key="stolen")["Body"].read() == BODY
        s3.delete_object(Bucket=ways.target, Key="stolen")
        return
    with pytest.raises(ClientError) as error:
        way(version)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    listed = s3.list_objects_v2(Bucket=ways.target).get("Contents", [])
    assert [entry["Key"] for entry in listed] == []


@pytest.fixture
def source(s3: Any, bucket: str) -> str:
    s3.put_object(Bucket=bucket, Key="secret", Body=BODY)
    return bucket


@pytest.fixture
def target(s3: Any, source: str) -> str:
    name = f"{source}-target"
    s3.create_bucket(Bucket=name)
    return name


def all_in(*buckets: str) -> list[str]:
    return [f"arn:aws:s3:::{name}{end}" for name in buckets for end in ("", "/*")]


@pytest.mark.parametrize("way", WAYS)
def test_f62_by_the_policies_of_a_user(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
    way: str,
) -> None:
    writes = policy("s3:*", resource=all_in(target))
    user = User(gateway, iam, writes)
    ways = Ways(user.s3, source, target)
    check(ways, s3, way, allowed=False)
    # all but to read it
    user.set(policy("s3:PutObject", "s3:List*", "s3:GetObjectTagging", "s3:GetObjectVersion", "s3:GetObjectAcl"))
    check(ways, s3, way, allowed=False)
    user.set(writes)
    iam.put_user_policy(
        UserName=user.name, PolicyName="reads", PolicyDocument=policy("s3:GetObject*", resource=all_in(source))
    )
    check(ways, s3, way, allowed=True)
    iam.put_user_policy(
        UserName=user.name,
        PolicyName="not",
        PolicyDocument=policy("s3:GetObject", resource=all_in(source), effect="Deny"),
    )
    check(ways, s3, way, allowed=False)


@pytest.mark.parametrize("way", ["copy_object", "upload_part_copy"])
def test_f62_by_the_policies_of_a_session(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
    way: str,
) -> None:
    """CVE-2025-62506 of MinIO: the session's own policy limits what its role may."""
    user = User(gateway, iam)
    arn = role(iam, user, policy("s3:*"))
    whole = Ways(assume(gateway, user, arn), source, target)
    limited = Ways(assume(gateway, user, arn, Policy=policy("s3:*", resource=all_in(target))), source, target)
    check(whole, s3, way, allowed=True)
    check(limited, s3, way, allowed=False)
    put(s3, source, statement(source, "s3:GetObject", "s3:GetObjectTagging", principal={"AWS": arn}))
    check(limited, s3, way, allowed=False)
    put(s3, source, statement(source, "s3:GetObject", principal={"AWS": arn}, Effect="Deny"))
    check(whole, s3, way, allowed=False)


@pytest.mark.parametrize("way", ["copy_object", "upload_part_copy"])
def test_f62_by_the_policies_of_buckets(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
    way: str,
) -> None:
    user = User(gateway, iam)
    ways = Ways(user.s3, source, target)
    put(s3, target, statement(target, "s3:*", principal={"AWS": user.arn}))
    check(ways, s3, way, allowed=False)
    put(s3, source, statement(source, "s3:*", principal={"AWS": user.arn}, keys="other"))
    check(ways, s3, way, allowed=False)
    put(s3, source, statement(source, "s3:GetObject*", principal={"AWS": user.arn}))
    check(ways, s3, way, allowed=True)


@pytest.mark.parametrize("way", ["copy_object", "upload_part_copy"])
def test_f62_of_another_account(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    other: Any,
    bucket: str,
    way: str,
) -> None:
    """A bucket policy of theirs opens it to our users only with a policy of ours."""
    theirs = f"{bucket}-theirs"
    other.create_bucket(Bucket=theirs)
    other.put_object(Bucket=theirs, Key="secret", Body=BODY)
    user = User(gateway, iam, policy("s3:*", resource=all_in(bucket)))
    ways, root = Ways(user.s3, theirs, bucket), Ways(s3, theirs, bucket)
    check(ways, s3, way, allowed=False)
    check(root, s3, way, allowed=False)
    put(other, theirs, statement(theirs, "s3:GetObject*", principal={"AWS": user.arn.split(":")[4]}))
    check(root, s3, way, allowed=True)
    check(ways, s3, way, allowed=False)
    user.set(policy("s3:*"))
    check(ways, s3, way, allowed=True)


@pytest.mark.parametrize("way", ["copy_object", "upload_part_copy"])
def test_f62_by_acls(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    other: Any,
    bucket: str,
    request: pytest.FixtureRequest,
    way: str,
) -> None:
    """A grant to our account is the account's; our users need a policy of ours besides."""
    if "tree" in request.node.callspec.id:
        pytest.skip("plain files have no ACLs")
    theirs = f"{bucket}-theirs"
    other.create_bucket(Bucket=theirs, ObjectOwnership="ObjectWriter")
    other.put_object(Bucket=theirs, Key="secret", Body=BODY)
    account = s3.list_buckets()["Owner"]["ID"]
    user = User(gateway, iam, policy("s3:*", resource=all_in(bucket)))
    ways, root = Ways(user.s3, theirs, bucket), Ways(s3, theirs, bucket)
    for who in (ways, root):
        check(who, s3, way, allowed=False)
    other.put_object_acl(Bucket=theirs, Key="secret", GrantReadACP=f"id={account}")
    check(root, s3, way, allowed=False)
    other.put_object_acl(Bucket=theirs, Key="secret", GrantRead=f"id={account}")
    check(root, s3, way, allowed=True)
    check(ways, s3, way, allowed=False)
    user.set(policy("s3:*"))
    check(ways, s3, way, allowed=True)


@pytest.mark.parametrize("way", WAYS)
def test_f63_of_a_version(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
    request: pytest.FixtureRequest,
    way: str,
) -> None:
    """GHSA-3ppv of RustFS: a version needs the right to versions, and no other is enough."""
    if "tree" in request.node.callspec.id:
        pytest.skip("plain files have no versions")
    s3.put_bucket_versioning(Bucket=source, VersioningConfiguration={"Status": "Enabled"})
    version = "?versionId=" + s3.put_object(Bucket=source, Key="secret", Body=BODY)["VersionId"]
    s3.put_object(Bucket=source, Key="secret", Body=BODY[::-1])
    user = User(gateway, iam, policy("s3:*", resource=all_in(target)))
    ways = Ways(user.s3, source, target)
    check(ways, s3, way, allowed=False, version=version)
    user.iam.put_user_policy(
        UserName=user.name, PolicyName="r", PolicyDocument=policy("s3:GetObject", "s3:GetObject*Tagging", resource="*")
    )
    check(ways, s3, way, allowed=False, version=version)
    user.iam.put_user_policy(
        UserName=user.name,
        PolicyName="r",
        PolicyDocument=policy("s3:GetObjectVersion", "s3:GetObjectVersionTagging", resource="*"),
    )
    check(ways, s3, way, allowed=True, version=version)


def test_f62_tags_of_the_source_are_a_right_of_their_own(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
) -> None:
    s3.put_object(Bucket=source, Key="secret", Body=BODY, Tagging="a=b")
    user = User(gateway, iam, policy("s3:*", resource=all_in(target)))
    ways = Ways(user.s3, source, target)
    iam.put_user_policy(UserName=user.name, PolicyName="r", PolicyDocument=policy("s3:GetObject"))
    check(ways, s3, "copy_object", allowed=False)
    iam.put_user_policy(
        UserName=user.name, PolicyName="r", PolicyDocument=policy("s3:GetObject", "s3:GetObjectTagging")
    )
    check(ways, s3, "copy_object", allowed=True)


def test_f62_the_target_needs_its_right_too(
    gateway: Gateway,
    iam: Any,
    s3: Any,
    source: str,
    target: str,
) -> None:
    """GHSA-mx42 and GHSA-wfxj of RustFS."""
    user = User(gateway, iam, policy("s3:GetObject*", "s3:List*"))
    ways = Ways(user.s3, source, target)
    check(ways, s3, "copy_object", allowed=False)
    upload = s3.create_multipart_upload(Bucket=target, Key="stolen")["UploadId"]
    with pytest.raises(ClientError) as error:
        user.s3.upload_part_copy(
            Bucket=target, Key="stolen", UploadId=upload, PartNumber=1, CopySource=f"{source}/secret"
        )
    assert error.value.response["Error"]["Code"] == "AccessDenied"


@pytest.mark.parametrize("missing", ["s3:GetObject", "s3:DeleteObject", "s3:PutObject"])
def test_f62_a_rename_needs_what_copy_and_delete_need(
    gateway: Gateway, iam: Any, s3: Any, source: str, request: pytest.FixtureRequest, missing: str
) -> None:
    if "tree" in request.node.callspec.id:
        pytest.skip("plain files are not renamed")
    rights = ["s3:GetObject", "s3:DeleteObject", "s3:PutObject", "s3:ListBucket"]
    user = User(gateway, iam, policy(*(right for right in rights if right != missing)))
    with pytest.raises(ClientError) as error:
        user.s3.rename_object(Bucket=source, Key="stolen", RenameSource="secret")
    assert error.value.response["Error"]["Code"] == "AccessDenied"
    user.set(policy(*rights, resource=f"arn:aws:s3:::{source}/stolen"))
    with pytest.raises(ClientError):
        user.s3.rename_object(Bucket=source, Key="stolen", RenameSource="secret")
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket=source)["Contents"]] == ["secret"]
    user.set(policy(*rights))
    user.s3.rename_object(Bucket=source, Key="stolen", RenameSource="secret")
    assert s3.get_object(Bucket=source, Key="stolen")["Body"].read() == BODY
