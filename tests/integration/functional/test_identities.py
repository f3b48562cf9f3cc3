"""Users, roles and sessions as clients know them: what they may do in buckets, and IAM and STS on the same endpoint."""

from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from sluice_s3.app.index import open_index
from sluice_s3.app.index.iam.rows import Session
from sluice_s3.app.settings import Settings
from tests.integration.functional.identities import User, assume, policy, role, service, session
from tests.integration.functional.test_objects import code_of
from tests.integration.functional.test_policy import OPEN, denied, put, statement
from tests.support.gateway import Gateway, client


def test_a_user_may_what_his_policies_allow(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="own/k", Body=b"body")
    user = User(gateway, iam)
    for call, arguments in (
        (user.s3.list_buckets, {}),
        (user.s3.list_objects_v2, {"Bucket": bucket}),
        (user.s3.get_object, {"Bucket": bucket, "Key": "own/k"}),
        (user.s3.put_object, {"Bucket": bucket, "Key": "own/k", "Body": b""}),
        (user.s3.delete_objects, {"Bucket": bucket, "Delete": {"Objects": [{"Key": "own/k"}]}}),
        (user.s3.create_bucket, {"Bucket": f"{bucket}-new"}),
        (user.s3.get_bucket_policy, {"Bucket": bucket}),
    ):
        if call != user.s3.delete_objects:
            denied(call, **arguments)
        else:
            assert [error["Code"] for error in call(**arguments)["Errors"]] == ["AccessDenied"]
    user.set(policy("s3:GetObject", "s3:PutObject", resource=f"arn:aws:s3:::{bucket}/own/*"))
    assert user.s3.get_object(Bucket=bucket, Key="own/k")["Body"].read() == b"body"
    user.s3.put_object(Bucket=bucket, Key="own/n", Body=b"x")
    denied(user.s3.put_object, Bucket=bucket, Key="n", Body=b"x")
    denied(user.s3.get_object, Bucket=bucket, Key="own/none")
    denied(user.s3.put_object, Bucket=bucket, Key="own/n", Body=b"x", Tagging="a=b")
    denied(user.s3.delete_object, Bucket=bucket, Key="own/n")
    user.set(policy("s3:*", resource=[f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]))
    with pytest.raises(ClientError) as error:
        user.s3.get_object(Bucket=bucket, Key="none")
    assert code_of(error) == (404, "NoSuchKey")
    denied(user.s3.list_buckets)
    user.s3.put_object(Bucket=bucket, Key="own/n", Body=b"x", Tagging="a=b")
    user.s3.delete_object(Bucket=bucket, Key="own/n")
    assert s3.get_object(Bucket=bucket, Key="own/k")["Body"].read() == b"body"


def test_a_deny_of_the_user_or_of_the_bucket_wins(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam, policy("s3:*"))
    user.s3.get_object(Bucket=bucket, Key="k")
    put(s3, bucket, statement(bucket, "s3:GetObject", "s3:*Policy", principal={"AWS": user.arn}, Effect="Deny"))
    denied(user.s3.get_object, Bucket=bucket, Key="k")
    # the account itself can always repair its policy, its users cannot
    denied(user.s3.delete_bucket_policy, Bucket=bucket)
    s3.delete_bucket_policy(Bucket=bucket)
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": user.arn}))
    user.set(policy("s3:*", effect="Deny"))
    denied(user.s3.get_object, Bucket=bucket, Key="k")


def test_what_a_bucket_gives_to_a_user(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    """Just to him: yes; to his account: only what the account's own policies give him; to everybody: yes."""
    s3.put_public_access_block(Bucket=bucket, PublicAccessBlockConfiguration=OPEN)
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam)
    number = user.arn.split(":")[4]
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": number}))
    denied(user.s3.get_object, Bucket=bucket, Key="k")
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": user.arn}))
    user.s3.get_object(Bucket=bucket, Key="k")
    put(s3, bucket, statement(bucket, "s3:GetObject"))
    user.s3.get_object(Bucket=bucket, Key="k")
    s3.delete_bucket_policy(Bucket=bucket)
    denied(user.s3.get_object, Bucket=bucket, Key="k")


def test_another_accounts_bucket_needs_both(gateway: Gateway, iam: Any, other: Any, bucket: str) -> None:
    theirs = f"{bucket}-theirs"
    other.create_bucket(Bucket=theirs)
    other.put_object(Bucket=theirs, Key="k", Body=b"body")
    user, silent = User(gateway, iam, policy("s3:GetObject")), User(gateway, iam)
    denied(user.s3.get_object, Bucket=theirs, Key="k")
    put(other, theirs, statement(theirs, "s3:GetObject", principal={"AWS": [user.arn, silent.arn]}))
    user.s3.get_object(Bucket=theirs, Key="k")
    denied(silent.s3.get_object, Bucket=theirs, Key="k")
    put(other, theirs, statement(theirs, "s3:GetObject", principal={"AWS": user.arn.split(":")[4]}))
    user.s3.get_object(Bucket=theirs, Key="k")
    denied(silent.s3.get_object, Bucket=theirs, Key="k")


def test_conditions_know_the_user(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    user = User(gateway, iam, policy("s3:PutObject", resource=f"arn:aws:s3:::{bucket}/${{aws:username}}/*"))
    user.s3.put_object(Bucket=bucket, Key=f"{user.name}/k", Body=b"")
    denied(user.s3.put_object, Bucket=bucket, Key="other/k", Body=b"")
    user.set(policy("s3:PutObject", Condition={"ArnEquals": {"aws:PrincipalArn": user.arn}}))
    user.s3.put_object(Bucket=bucket, Key="k", Body=b"")
    user.set(policy("s3:PutObject", Condition={"Null": {"aws:TokenIssueTime": "false"}}))
    denied(user.s3.put_object, Bucket=bucket, Key="k", Body=b"")
    user.set(policy("s3:GetObject", Condition={"StringEquals": {"s3:ExistingObjectTag/open": "yes"}}))
    s3.put_object(Bucket=bucket, Key="open", Body=b"", Tagging="open=yes")
    user.s3.get_object(Bucket=bucket, Key="open")
    denied(user.s3.get_object, Bucket=bucket, Key="k")


def test_groups_and_managed_policies(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    user, group = User(gateway, iam), f"group-{time.time_ns()}"
    iam.create_group(GroupName=group)
    iam.attach_group_policy(GroupName=group, PolicyArn="arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
    denied(user.s3.list_objects_v2, Bucket=bucket)
    iam.add_user_to_group(GroupName=group, UserName=user.name)
    user.s3.list_objects_v2(Bucket=bucket)
    denied(user.s3.put_object, Bucket=bucket, Key="k", Body=b"")
    iam.put_group_policy(GroupName=group, PolicyName="p", PolicyDocument=policy("s3:ListBucket", effect="Deny"))
    denied(user.s3.list_objects_v2, Bucket=bucket)
    iam.remove_user_from_group(GroupName=group, UserName=user.name)
    denied(user.s3.get_bucket_location, Bucket=bucket)


def test_new_buckets_need_a_right_for_each_thing_they_get(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    user = User(gateway, iam, policy("s3:CreateBucket", resource=f"arn:aws:s3:::{bucket}-*"))
    denied(user.s3.create_bucket, Bucket=f"{bucket}.other")
    denied(user.s3.create_bucket, Bucket=f"{bucket}-a", ObjectOwnership="BucketOwnerEnforced")
    denied(user.s3.create_bucket, Bucket=f"{bucket}-a", ObjectLockEnabledForBucket=True)
    denied(user.s3.create_bucket, Bucket=f"{bucket}-a", ACL="private")
    user.s3.create_bucket(Bucket=f"{bucket}-a")
    assert f"{bucket}-a" in {one["Name"] for one in s3.list_buckets()["Buckets"]}, "it is the account's"


def test_whom_a_deny_spares(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    spared, other = User(gateway, iam), User(gateway, iam)
    rights = ("s3:GetObject", "s3:PutObject", "s3:PutObjectTagging")
    names = {"AWS": [spared.arn, f"arn:aws:iam::{spared.arn.split(':')[4]}:root"]}
    deny = statement(bucket, *rights, Effect="Deny", NotPrincipal=names)
    del deny["Principal"]
    put(s3, bucket, statement(bucket, *rights, principal={"AWS": [spared.arn, other.arn]}), deny)
    spared.s3.get_object(Bucket=bucket, Key="k")
    spared.s3.put_object(Bucket=bucket, Key="k", Body=b"body", Tagging="a=b")
    denied(other.s3.get_object, Bucket=bucket, Key="k")
    denied(other.s3.put_object, Bucket=bucket, Key="k", Body=b"body")


def test_where_new_buckets_may_be(gateway: Gateway, iam: Any, bucket: str) -> None:
    here, only = "us-east-1:default", "us-east-1"
    named = {"s3:LocationConstraint": here}
    but = User(gateway, iam, policy("s3:*"), policy("s3:*", effect="Deny", Condition={"StringEquals": named}))
    just = User(gateway, iam, policy("s3:CreateBucket", Condition={"StringEquals": {"s3:LocationConstraint": only}}))
    unless = User(gateway, iam, policy("s3:CreateBucket", Condition={"StringNotEquals": named}))
    for user in (but, just, unless):
        denied(user.s3.create_bucket, Bucket=f"{bucket}-a", CreateBucketConfiguration={"LocationConstraint": here})
    denied(just.s3.create_bucket, Bucket=f"{bucket}-a")
    denied(just.s3.create_bucket, Bucket=f"{bucket}-a", ObjectOwnership="BucketOwnerEnforced")
    for number, user in enumerate((but, just, unless)):
        name, location = f"{bucket}-{number}", {"LocationConstraint": only}
        user.s3.create_bucket(Bucket=name, CreateBucketConfiguration=location)
    but.s3.create_bucket(Bucket=f"{bucket}-none")


@pytest.mark.parametrize("key", ["aws:RequestedRegion", "aws:ResourceAccount"])
def test_conditions_on_what_is_in_no_bucket(gateway: Gateway, iam: Any, bucket: str, key: str) -> None:
    right = "us-east-1" if key == "aws:RequestedRegion" else service(gateway, "sts").get_caller_identity()["Account"]
    everything = [policy("*"), policy("*", effect="Deny", Condition={"StringNotEquals": {key: right}})]
    only = [policy("*", Condition={"StringEquals": {key: right}})]
    for number, documents in enumerate((everything, only)):
        user = User(gateway, iam, *documents)
        user.s3.list_buckets()
        user.s3.create_bucket(Bucket=f"{bucket}-{number}")
        service(gateway, "iam", user.key, user.secret).list_groups()
        user.sts.get_session_token()
        account = iam.get_user()["User"]["Arn"]
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": account}}
        text = json.dumps({"Version": "2012-10-17", "Statement": trust})
        made = iam.create_role(RoleName=f"{bucket}-{number}", AssumeRolePolicyDocument=text)["Role"]
        user.sts.assume_role(RoleArn=made["Arn"], RoleSessionName="one")
    but = User(gateway, iam, policy("*"), policy("*", effect="Deny", Condition={"StringEquals": {key: right}}))
    denied(but.s3.list_buckets)
    denied(but.s3.create_bucket, Bucket=f"{bucket}-none")
    denied(service(gateway, "iam", but.key, but.secret).list_groups)


def test_a_changed_right_holds_in_every_worker_at_once(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam, policy("s3:GetObject"))
    readers = [client(gateway.endpoint, user.key, user.secret) for _ in range(8)]
    for reader in readers:
        reader.get_object(Bucket=bucket, Key="k")
    user.set(policy("s3:GetObject", effect="Deny"))
    for reader in readers:
        denied(reader.get_object, Bucket=bucket, Key="k")
    user.set(policy("s3:GetObject"))
    iam.update_access_key(UserName=user.name, AccessKeyId=user.key, Status="Inactive")
    for reader in readers:
        with pytest.raises(ClientError) as error:
            reader.get_object(Bucket=bucket, Key="k")
        assert code_of(error) == (403, "InvalidAccessKeyId")


def test_a_session_of_a_role(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam)
    arn = role(iam, user, policy("s3:GetObject", "s3:PutObject"))
    denied(user.s3.get_object, Bucket=bucket, Key="k")
    there = assume(gateway, user, arn)
    assert there.get_object(Bucket=bucket, Key="k")["Body"].read() == b"body"
    there.put_object(Bucket=bucket, Key="large", Body=b"x" * 200_000)
    limited = assume(gateway, user, arn, Policy=policy("s3:GetObject", resource=f"arn:aws:s3:::{bucket}/k"))
    limited.get_object(Bucket=bucket, Key="k")
    denied(limited.get_object, Bucket=bucket, Key="large")
    denied(limited.put_object, Bucket=bucket, Key="k", Body=b"")
    put(s3, bucket, statement(bucket, "s3:DeleteObject", principal={"AWS": arn}))
    there.delete_object(Bucket=bucket, Key="large")
    denied(limited.delete_object, Bucket=bucket, Key="k")
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": arn}, Effect="Deny"))
    denied(there.get_object, Bucket=bucket, Key="k")


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_signed_urls_and_forms_of_a_session(gateway: Gateway, iam: Any, bucket: str, version: str) -> None:
    user = User(gateway, iam)
    arn = role(iam, user, policy("s3:GetObject", "s3:PutObject"))
    made = user.sts.assume_role(RoleArn=arn, RoleSessionName="one")["Credentials"]
    there = session(gateway, made, version)
    with httpx.Client() as browser:
        place = there.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "k"})
        assert browser.put(place, content=b"body").status_code == 200
        place = there.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "k"})
        assert browser.get(place).content == b"body"
        bad = browser.get(re.sub("(?i)security-token=", r"\g<0>x", place))
        assert (bad.status_code, "SignatureDoesNotMatch" in bad.text) == (403, True)
        form = there.generate_presigned_post(bucket, "form")
        assert browser.post(form["url"], data=form["fields"], files={"file": b"body"}).status_code == 204
        wrong = form["fields"] | {"x-amz-security-token": "wrong"}
        assert browser.post(form["url"], data=wrong, files={"file": b"body"}).status_code in (400, 403)
        without = {name: value for name, value in form["fields"].items() if name != "x-amz-security-token"}
        assert browser.post(form["url"], data=without, files={"file": b"body"}).status_code == 403
    assert there.get_object(Bucket=bucket, Key="form")["Body"].read() == b"body"


def test_a20_tokens(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    """Missing, another's, of a key that has none; and the same for IAM and STS."""
    user = User(gateway, iam, policy("*"))
    arn = role(iam, user, policy("s3:*"))
    one, two = (user.sts.assume_role(RoleArn=arn, RoleSessionName="one")["Credentials"] for _ in range(2))
    session(gateway, one).list_objects_v2(Bucket=bucket)
    for made, status, code, of_sts in (
        ({**one, "SessionToken": two["SessionToken"]}, 400, "InvalidToken", "InvalidClientTokenId"),
        ({**one, "SessionToken": None}, 403, "InvalidAccessKeyId", "InvalidClientTokenId"),
        ({**one, "SecretAccessKey": two["SecretAccessKey"]}, 403, "SignatureDoesNotMatch", "SignatureDoesNotMatch"),
        (
            {"AccessKeyId": user.key, "SecretAccessKey": user.secret, "SessionToken": one["SessionToken"]},
            400,
            "InvalidToken",
            "InvalidClientTokenId",
        ),
        ({**one, "AccessKeyId": "ASIA" + "A" * 16}, 403, "InvalidAccessKeyId", "InvalidClientTokenId"),
    ):
        with pytest.raises(ClientError) as error:
            session(gateway, made).list_objects_v2(Bucket=bucket)
        assert code_of(error) == (status, code)
        caller = service(gateway, "sts", made["AccessKeyId"], made["SecretAccessKey"], made["SessionToken"])
        with pytest.raises(ClientError) as error:
            caller.get_caller_identity()
        assert code_of(error) == (403, of_sts)


def test_answers_are_in_the_form_of_these_services(gateway: Gateway, iam: Any) -> None:
    sts = service(gateway, "sts")
    told = sts.get_caller_identity()
    assert (told["Arn"], told["UserId"]) == (f"arn:aws:iam::{told['Account']}:root", told["Account"])
    user = User(gateway, iam, policy("s3:GetObject"))
    assert iam.get_user_policy(UserName=user.name, PolicyName="p0")["PolicyDocument"]["Statement"]["Resource"] == "*"
    with pytest.raises(iam.exceptions.NoSuchEntityException):
        iam.get_user(UserName="nobody")
    with pytest.raises(iam.exceptions.EntityAlreadyExistsException):
        iam.create_user(UserName=user.name.upper())
    with pytest.raises(iam.exceptions.MalformedPolicyDocumentException):
        iam.put_user_policy(UserName=user.name, PolicyName="p", PolicyDocument="{}")
    for unseen in ("\0", "\x1f", "\ufffe"):
        with pytest.raises(ClientError) as error:
            iam.get_user(UserName=f"no{unseen}body")
        assert code_of(error) == (400, "ValidationError")
    with pytest.raises(iam.exceptions.DeleteConflictException):
        iam.delete_user(UserName=user.name)
    with pytest.raises(ClientError) as error:
        service(gateway, "iam", user.key, user.secret).list_users()
    assert code_of(error) == (403, "AccessDenied")
    assert "iam:ListUsers" in error.value.response["Error"]["Message"]
    assert [page["IsTruncated"] for page in iam.get_paginator("list_users").paginate(PaginationConfig={"PageSize": 1})]


@pytest.mark.parametrize(
    ("headers", "body", "status", "code"),
    [
        ({}, b"Action=ListUsers&Version=2010-05-08", 403, "MissingAuthenticationToken"),
        ({"authorization": "AWS x:y"}, b"Action=ListUsers", 400, "IncompleteSignature"),
        ({"authorization": "Bearer x"}, b"Action=ListUsers", 400, "IncompleteSignature"),
    ],
)
def test_forms_that_nobody_signed(
    gateway: Gateway, headers: dict[str, str], body: bytes, status: int, code: str
) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = httpx.post(gateway.endpoint, headers={**form, **headers}, content=body)
    assert (answer.status_code, f"<Code>{code}</Code>" in answer.text) == (status, True)
    assert "<ErrorResponse" in answer.text


def test_a20_a_session_expires(gateway: Gateway, s3: Any, bucket: str) -> None:
    """One that has just ended is put into the index, since the shortest lasts a quarter of an hour."""
    made = {"AccessKeyId": f"ASIA{time.time_ns():016d}", "SecretAccessKey": "s" * 40, "SessionToken": "t" * 40}
    now = time.time_ns() // 1_000_000

    async def add() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in gateway.environment().items():
                patch.setenv(name, value)
            where = {"data": gateway.data} if "--data" in gateway.where() else {}
            opened = open_index(Settings(**where), writer=False)  # type: ignore[arg-type]
        await opened.start()
        try:
            (account, *_), *_ = await opened.accounts()
            await opened.add_session(Session(*made.values(), account.id, "", "", "[]", now - 900_000, now), 1000)
        finally:
            await opened.close()

    asyncio.run(add())
    with pytest.raises(ClientError) as error:
        session(gateway, made).list_objects_v2(Bucket=bucket)
    assert code_of(error) == (400, "ExpiredToken")
    with pytest.raises(ClientError) as error:
        service(gateway, "sts", *made.values()).get_caller_identity()
    assert code_of(error) == (403, "ExpiredToken")


def test_a_user_made_anew_has_not_what_a_bucket_gave_the_old_one(
    gateway: Gateway, iam: Any, s3: Any, bucket: str
) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam)
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": user.arn}))
    assert user.arn in s3.get_bucket_policy(Bucket=bucket)["Policy"]
    user.s3.get_object(Bucket=bucket, Key="k")
    unique = iam.get_user(UserName=user.name)["User"]["UserId"]
    iam.delete_access_key(UserName=user.name, AccessKeyId=user.key)
    iam.delete_user(UserName=user.name)
    assert unique in s3.get_bucket_policy(Bucket=bucket)["Policy"]
    iam.create_user(UserName=user.name)
    key = iam.create_access_key(UserName=user.name)["AccessKey"]
    again = client(gateway.endpoint, key["AccessKeyId"], key["SecretAccessKey"])
    denied(again.get_object, Bucket=bucket, Key="k")
    text = s3.get_bucket_policy(Bucket=bucket)["Policy"]
    assert user.arn not in text
    with pytest.raises(ClientError) as error:
        s3.put_bucket_policy(Bucket=bucket, Policy=text)
    assert error.value.response["Error"]["Code"] == "MalformedPolicy"
    assert error.value.response["Error"]["Message"] == "Invalid principal in policy"
    put(s3, bucket, statement(bucket, "s3:GetObject", principal={"AWS": user.arn}))
    again.get_object(Bucket=bucket, Key="k")


def test_a_long_policy_with_a_user_is_got_as_it_was_put(gateway: Gateway, iam: Any, s3: Any, bucket: str) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"body")
    user = User(gateway, iam)
    said = statement(bucket, "s3:GetObject", principal={"AWS": user.arn}, Sid="")
    said["Sid"] = "a" * (20_476 - len(json.dumps({"Statement": said}, separators=(",", ":"))))
    text = json.dumps({"Statement": said}, separators=(",", ":"))
    for _ in range(2):
        s3.put_bucket_policy(Bucket=bucket, Policy=text)
        user.s3.get_object(Bucket=bucket, Key="k")
        assert s3.get_bucket_policy(Bucket=bucket)["Policy"] == text
