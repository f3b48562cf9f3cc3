"""Tags of objects and buckets, and policies that speak of them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OTHER, denied, public, put, statement  # noqa: F401 - `public` is a fixture
from tests.integration.functional.test_post_object import error, policy_of, post, signed_v2
from tests.support.gateway import Gateway, client

PAIRS = {"team": "red", "a b": "ä/+=@:.-_"}


def tag_set(tags: dict[str, str]) -> dict[str, list[dict[str, str]]]:
    return {"TagSet": [{"Key": key, "Value": value} for key, value in tags.items()]}


def tags_of(s3: Any, bucket: str, key: str) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"]}


def count_of(answer: dict[str, Any]) -> str | None:
    count: str | None = answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-tagging-count")
    return count


def refused(expected: tuple[int, str], call: Any, **arguments: Any) -> None:
    with pytest.raises(ClientError) as found:
        call(**arguments)
    assert code_of(found) == expected


def test_life_of_an_objects_tags(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body", ContentType="text/plain", Metadata={"m": "1"})
    assert tags_of(s3, bucket, "k") == {}
    before = s3.head_object(Bucket=bucket, Key="k")
    assert count_of(before) is None
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(PAIRS))
    assert tags_of(s3, bucket, "k") == PAIRS
    assert list(tags_of(s3, bucket, "k")) == sorted(PAIRS)
    after = s3.get_object(Bucket=bucket, Key="k")
    assert (count_of(after), after["Body"].read()) == ("2", b"body")
    for name in ("ETag", "LastModified", "ContentType", "Metadata"):
        assert after[name] == before[name]
    assert count_of(s3.head_object(Bucket=bucket, Key="k")) == "2"
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"only": ""}))
    assert tags_of(s3, bucket, "k") == {"only": ""}
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({}))
    assert tags_of(s3, bucket, "k") == {}
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(PAIRS))
    answer = s3.delete_object_tagging(Bucket=bucket, Key="k")
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    assert tags_of(s3, bucket, "k") == {}
    assert count_of(s3.head_object(Bucket=bucket, Key="k")) is None
    for call in (s3.get_object_tagging, s3.delete_object_tagging):
        refused((404, "NoSuchKey"), call, Bucket=bucket, Key="none")
    refused((404, "NoSuchKey"), s3.put_object_tagging, Bucket=bucket, Key="none", Tagging=tag_set(PAIRS))


def test_tags_that_come_with_an_object(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"b", Tagging="team=red&a%20b=%C3%A4%2F%2B%3D%40%3A.-_&empty")
    assert tags_of(s3, bucket, "k") == {**PAIRS, "empty": ""}
    s3.put_object(Bucket=bucket, Key="k", Body=b"b")
    assert tags_of(s3, bucket, "k") == {}
    upload = s3.create_multipart_upload(Bucket=bucket, Key="m", Tagging="x=1&y=2")["UploadId"]
    part = s3.upload_part(Bucket=bucket, Key="m", UploadId=upload, PartNumber=1, Body=b"p")
    parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
    s3.complete_multipart_upload(Bucket=bucket, Key="m", UploadId=upload, MultipartUpload=parts)
    assert tags_of(s3, bucket, "m") == {"x": "1", "y": "2"}
    copy = {"Bucket": bucket, "CopySource": f"{bucket}/m"}
    s3.copy_object(Key="kept", **copy)
    assert tags_of(s3, bucket, "kept") == {"x": "1", "y": "2"}
    s3.copy_object(Key="kept", Tagging="not=taken", **copy)
    assert tags_of(s3, bucket, "kept") == {"x": "1", "y": "2"}
    s3.copy_object(Key="other", TaggingDirective="REPLACE", Tagging="z=3", **copy)
    assert tags_of(s3, bucket, "other") == {"z": "3"}
    s3.copy_object(Key="none", TaggingDirective="REPLACE", **copy)
    assert tags_of(s3, bucket, "none") == {}
    s3.copy_object(Key="meta", MetadataDirective="REPLACE", Metadata={"a": "1"}, **copy)
    assert tags_of(s3, bucket, "meta") == {"x": "1", "y": "2"}
    refused((400, "InvalidArgument"), s3.copy_object, Key="none", TaggingDirective="MOVE", **copy)


BAD_TAGS = [
    ({"k" * 129: "v"}, "InvalidTag"),
    ({"k": "v" * 257}, "InvalidTag"),
    ({"aws:k": "v"}, "InvalidTag"),
    ({"k&": "v"}, "InvalidTag"),
    ({"k": "v<"}, "InvalidTag"),
    ({"k": "v\U0001f600"}, "InvalidTag"),
    ({str(number): "" for number in range(51)}, "BadRequest"),
]


@pytest.mark.parametrize(("tags", "code"), BAD_TAGS)
def test_tags_that_cannot_be(s3: Any, bucket: str, tags: dict[str, str], code: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Tagging="a=1")
    refused((400, code), s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=tag_set(tags))
    refused((400, code), s3.put_bucket_tagging, Bucket=bucket, Tagging=tag_set(tags))
    text = str(httpx.QueryParams(tags))
    refused((400, code), s3.put_object, Bucket=bucket, Key="k", Tagging=text)
    refused((400, code), s3.create_multipart_upload, Bucket=bucket, Key="k", Tagging=text)
    assert tags_of(s3, bucket, "k") == {"a": "1"}


def test_limits_and_doubles(s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    most = {f"{number:03}{'ä' * 125}": "ö" * 256 for number in range(50)}
    s3.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(most))
    assert s3.get_bucket_tagging(Bucket=bucket)["TagSet"] == tag_set(most)["TagSet"]
    eleven = dict(list(most.items())[:11])
    refused((400, "BadRequest"), s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=tag_set(eleven))
    ten = dict(list(most.items())[:10])
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set(ten))
    assert tags_of(s3, bucket, "k") == ten
    double = {"TagSet": [{"Key": "a", "Value": "1"}, {"Key": "a", "Value": "2"}]}
    refused((400, "InvalidTag"), s3.put_object_tagging, Bucket=bucket, Key="k", Tagging=double)
    refused((400, "InvalidTag"), s3.put_bucket_tagging, Bucket=bucket, Tagging=double)
    for text in ("a=1&a=2", "a=1&%61=2", "a=%zz", "a=%ff"):
        refused((400, "InvalidArgument"), s3.put_object, Bucket=bucket, Key="k", Tagging=text)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "<Tagging/>",
        "<TagSet/>",
        "<Tagging><TagSet/><TagSet/></Tagging>",
        "<Tagging><TagSet><Tag/></TagSet></Tagging>",
        "<Tagging><TagSet><Tag><Key>k</Key></Tag></TagSet></Tagging>",
        "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value><Value>w</Value></Tag></TagSet></Tagging>",
        "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value><Colour>w</Colour></Tag></TagSet></Tagging>",
        "<Tagging><TagSet><Other/></TagSet></Tagging>",
        "<!DOCTYPE a><Tagging><TagSet/></Tagging>",
    ],
)
def test_documents_that_are_none(gateway: Gateway, s3: Any, bucket: str, body: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"")
    for method, arguments in (("get_bucket_tagging", {}), ("get_object_tagging", {"Key": "k"})):
        url = signed_put(gateway, method, Bucket=bucket, **arguments)
        assert error(httpx.put(url, content=body))[:2] == (400, "MalformedXML")


def signed_put(gateway: Gateway, method: str, **arguments: Any) -> str:
    """A URL to put what a method gets."""
    signer = client(gateway.endpoint, signature_version="s3v4")
    url: str = signer.generate_presigned_url(method, Params=arguments, HttpMethod="PUT")
    return url


def test_an_empty_key_is_none(gateway: Gateway, bucket: str) -> None:
    body = "<Tagging><TagSet><Tag><Key></Key><Value>v</Value></Tag></TagSet></Tagging>"
    answer = httpx.put(signed_put(gateway, "get_bucket_tagging", Bucket=bucket), content=body)
    assert error(answer)[:2] == (400, "InvalidTag")


def test_life_of_a_buckets_tags(s3: Any, bucket: str) -> None:
    refused((404, "NoSuchTagSet"), s3.get_bucket_tagging, Bucket=bucket)
    s3.delete_bucket_tagging(Bucket=bucket)
    s3.put_bucket_tagging(Bucket=bucket, Tagging=tag_set(PAIRS))
    found = s3.get_bucket_tagging(Bucket=bucket)["TagSet"]
    assert {one["Key"]: one["Value"] for one in found} == PAIRS
    answer = s3.delete_bucket_tagging(Bucket=bucket)
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 204
    refused((404, "NoSuchTagSet"), s3.get_bucket_tagging, Bucket=bucket)


def test_a_form_gives_tags(gateway: Gateway, s3: Any, bucket: str) -> None:
    document = "<Tagging>\n<TagSet><Tag><Key>a b</Key><Value>&#228;</Value></Tag></TagSet></Tagging>"
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}, ["starts-with", "$tagging", ""]))
    assert post(gateway, bucket, {"key": "k", "tagging": document, **signed}).status_code == 204
    assert tags_of(s3, bucket, "k") == {"a b": "ä"}
    assert error(post(gateway, bucket, {"key": "k", "tagging": "a=b", **signed}))[:2] == (400, "MalformedXML")
    signed = signed_v2(policy_of({"bucket": bucket}, {"key": "k"}))
    assert error(post(gateway, bucket, {"key": "k", "tagging": document, **signed}))[:2] == (403, "AccessDenied")


def test_an_acl_keeps_tags_and_tags_keep_an_acl(s3: Any, bucket: str, request: pytest.FixtureRequest) -> None:
    if "tree" in request.node.name:
        pytest.skip("plain files have no ACLs")
    ownership = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    s3.put_bucket_ownership_controls(Bucket=bucket, OwnershipControls=ownership)
    s3.put_object(Bucket=bucket, Key="k", Tagging="a=1")
    s3.put_object_acl(Bucket=bucket, Key="k", ACL="aws-exec-read")
    assert tags_of(s3, bucket, "k") == {"a": "1"}
    s3.put_object_acl(Bucket=bucket, Key="k", GrantReadACP="id=" + s3.get_bucket_acl(Bucket=bucket)["Owner"]["ID"])
    before = s3.get_object_acl(Bucket=bucket, Key="k")["Grants"]
    s3.put_object_tagging(Bucket=bucket, Key="k", Tagging=tag_set({"b": "2"}))
    assert s3.get_object_acl(Bucket=bucket, Key="k")["Grants"] == before
    assert tags_of(s3, bucket, "k") == {"b": "2"}
    s3.copy_object(Bucket=bucket, Key="l", CopySource=f"{bucket}/k")
    assert tags_of(s3, bucket, "l") == {"b": "2"}


def existing(value: str, operator: str = "StringEquals", key: str = "team") -> dict[str, Any]:
    return {"Condition": {operator: {f"s3:ExistingObjectTag/{key}": value}}}


def test_policies_on_tags_that_are_there(s3: Any, other: Any, public: str) -> None:  # noqa: F811 - the fixture
    s3.put_object(Bucket=public, Key="red", Body=b"red", Tagging="Team=red")
    s3.put_object(Bucket=public, Key="blue", Body=b"blue", Tagging="Team=blue")
    reads = statement(public, "s3:GetObject", "s3:GetObjectTagging", "s3:PutObjectTagging", principal={"AWS": OTHER})
    put(s3, public, reads | existing("red"))
    assert other.get_object(Bucket=public, Key="red")["Body"].read() == b"red"
    assert count_of(other.head_object(Bucket=public, Key="red")) == "1"
    assert tags_of(other, public, "red") == {"Team": "red"}
    for key in ("blue", "k", "none"):
        denied(other.get_object, Bucket=public, Key=key)
        denied(other.head_object, Bucket=public, Key=key)
        denied(other.get_object_tagging, Bucket=public, Key=key)
        denied(other.put_object_tagging, Bucket=public, Key=key, Tagging=tag_set({"Team": "red"}))
    other.put_object_tagging(Bucket=public, Key="red", Tagging=tag_set({"Team": "blue"}))
    denied(other.get_object, Bucket=public, Key="red")
    # a copy reads its source
    copies = statement(public, "s3:PutObject", "s3:PutObjectTagging", principal={"AWS": OTHER}, keys="mine/*")
    put(s3, public, reads | existing("blue"), copies)
    other.copy_object(Bucket=public, Key="mine/a", CopySource=f"{public}/red")
    denied(other.copy_object, Bucket=public, Key="mine/b", CopySource=f"{public}/k")
    assert tags_of(s3, public, "mine/a") == {"Team": "blue"}
    # who may not read tags may not copy them either, nor be told how many there are
    put(s3, public, statement(public, "s3:GetObject", principal={"AWS": OTHER}) | existing("blue"), copies)
    denied(other.copy_object, Bucket=public, Key="mine/b", CopySource=f"{public}/red")
    other.copy_object(
        Bucket=public, Key="mine/b", CopySource=f"{public}/red", TaggingDirective="REPLACE", Tagging="Team=own"
    )
    assert count_of(other.head_object(Bucket=public, Key="red")) is None


def test_a_denial_by_tags_holds_for_the_owner_too(s3: Any, public: str) -> None:  # noqa: F811 - the fixture
    deny = statement(public, "s3:GetObject", Effect="Deny") | existing("secret", key="class")
    put(s3, public, deny)
    s3.get_object(Bucket=public, Key="k")
    s3.put_object(Bucket=public, Key="s", Tagging="class=secret")
    denied(s3.get_object, Bucket=public, Key="s")
    refused((404, "NoSuchKey"), s3.get_object, Bucket=public, Key="none")
    # writing and deleting have nothing to do with the tags that are there
    s3.put_object(Bucket=public, Key="s", Tagging="class=secret")
    s3.delete_object(Bucket=public, Key="s")
    put(s3, public, statement(public, "s3:GetObject", Effect="Deny") | existing("open", "StringNotEquals", "class"))
    denied(s3.get_object, Bucket=public, Key="k")
    s3.put_object_tagging(Bucket=public, Key="k", Tagging=tag_set({"class": "open"}))
    s3.get_object(Bucket=public, Key="k")
    with pytest.raises(ClientError) as found:
        put(s3, public, statement(public, "s3:PutObject", Effect="Deny") | existing("x"))
    assert code_of(found) == (400, "MalformedPolicy")


def test_policies_on_tags_that_are_given(s3: Any, other: Any, public: str) -> None:  # noqa: F811 - the fixture
    writes = statement(public, "s3:PutObject", "s3:PutObjectTagging", principal={"AWS": OTHER})
    condition = {
        "StringEquals": {"s3:RequestObjectTag/team": "red"},
        "ForAllValues:StringLike": {"s3:RequestObjectTagKeys": ["team", "x*"]},
    }
    put(s3, public, writes | {"Condition": condition})
    other.put_object(Bucket=public, Key="n", Tagging="team=red&x1=1")
    denied(other.put_object, Bucket=public, Key="n")
    denied(other.put_object, Bucket=public, Key="n", Tagging="team=blue")
    denied(other.put_object, Bucket=public, Key="n", Tagging="team=red&y=1")
    other.put_object_tagging(Bucket=public, Key="k", Tagging=tag_set({"team": "red", "x": ""}))
    denied(other.put_object_tagging, Bucket=public, Key="k", Tagging=tag_set({"team": "blue"}))
    denied(other.put_object_tagging, Bucket=public, Key="k", Tagging=tag_set({"team": "red", "y": ""}))
    assert tags_of(s3, public, "k") == {"team": "red", "x": ""}
    other.create_multipart_upload(Bucket=public, Key="n", Tagging="team=red")
    denied(other.create_multipart_upload, Bucket=public, Key="n", Tagging="team=blue")
    # the right to put is not the right to give tags
    put(s3, public, statement(public, "s3:PutObject", principal={"AWS": OTHER}))
    other.put_object(Bucket=public, Key="n")
    denied(other.put_object, Bucket=public, Key="n", Tagging="team=red")
    denied(other.create_multipart_upload, Bucket=public, Key="n", Tagging="team=red")
    denied(other.put_object_tagging, Bucket=public, Key="n", Tagging=tag_set({}))
    denied(other.delete_object_tagging, Bucket=public, Key="n")


def test_tags_of_versions(
    s3: Any,
    other: Any,
    public: str,  # noqa: F811 - the fixture
    request: pytest.FixtureRequest,
) -> None:
    if "tree" in request.node.name:
        pytest.skip("plain files have no versions")
    s3.put_bucket_versioning(Bucket=public, VersioningConfiguration={"Status": "Enabled"})
    ids = [s3.put_object(Bucket=public, Key="v", Tagging=f"n={number}")["VersionId"] for number in range(3)]

    def tags(version_id: str | None, by: Any = s3) -> dict[str, str]:
        named = {} if version_id is None else {"VersionId": version_id}
        answer = by.get_object_tagging(Bucket=public, Key="v", **named)
        assert answer["VersionId"] == (version_id or ids[-1])
        return {one["Key"]: one["Value"] for one in answer["TagSet"]}

    assert [tags(one) for one in [*ids, None]] == [{"n": "0"}, {"n": "1"}, {"n": "2"}, {"n": "2"}]
    named = {"Bucket": public, "Key": "v", "VersionId": ids[0]}
    assert s3.put_object_tagging(Tagging=tag_set({"n": "old"}), **named)["VersionId"] == ids[0]
    assert [tags(one) for one in ids] == [{"n": "old"}, {"n": "1"}, {"n": "2"}]
    assert s3.put_object_tagging(Bucket=public, Key="v", Tagging=tag_set({"n": "new"}))["VersionId"] == ids[2]
    assert [tags(one) for one in ids] == [{"n": "old"}, {"n": "1"}, {"n": "new"}]
    # a version keeps its place whatever its tags are
    listed = [one["VersionId"] for one in s3.list_object_versions(Bucket=public, Prefix="v")["Versions"]]
    assert listed == ids[::-1]
    assert s3.delete_object_tagging(**named)["VersionId"] == ids[0]
    assert [tags(one) for one in ids] == [{}, {"n": "1"}, {"n": "new"}]
    reads = statement(public, "s3:GetObjectVersionTagging", principal={"AWS": OTHER})
    put(s3, public, reads | existing("1", key="n"))
    assert tags(ids[1], other) == {"n": "1"}
    denied(other.get_object_tagging, **named)
    denied(other.get_object_tagging, Bucket=public, Key="v")
    marker = s3.delete_object(Bucket=public, Key="v")["VersionId"]
    refused((404, "NoSuchKey"), s3.get_object_tagging, Bucket=public, Key="v")
    for call, more in ((s3.get_object_tagging, {}), (s3.put_object_tagging, {"Tagging": tag_set({})})):
        refused((405, "MethodNotAllowed"), call, Bucket=public, Key="v", VersionId=marker, **more)
    assert tags(ids[1]) == {"n": "1"}


@pytest.mark.parametrize("name", ["sse", "lock", "acl", "tags"])
def test_a_tag_can_have_the_name_of_what_a_row_keeps(s3: Any, bucket: str, name: str) -> None:
    """How an object is encrypted and locked stands beside its tags."""
    place = {"Bucket": bucket, "Key": "k"}
    s3.put_object(**place, Body=b"body", Tagging=f"{name}=1")
    found = s3.get_object(**place)
    assert (found["Body"].read(), count_of(found)) == (b"body", "1")
    assert not {"ServerSideEncryption", "ObjectLockMode"} & set(found)
    s3.put_object_tagging(**place, Tagging=tag_set({name: "2", "b": name}))
    assert tags_of(s3, bucket, "k") == {name: "2", "b": name}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=place)
    assert s3.get_object(Bucket=bucket, Key="copy")["Body"].read() == b"body"
    s3.put_object(**place, Body=b"next", Tagging=f"{name}=1")  # over one that nothing keeps
    s3.delete_object(**place)
    s3.delete_object(Bucket=bucket, Key="copy")
