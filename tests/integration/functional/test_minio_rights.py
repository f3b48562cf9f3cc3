"""MinIO's admin API: rights are checked before anything is done, or costs much."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.functional.identities import User, policy
from tests.integration.functional.minio_admin import Admin, refused
from tests.support.gateway import ACCESS_KEY, Gateway
from tests.support.raw_http import Client, Request
from tests.support.signing import Key, Way, sign_full


def caller(gateway: Gateway, iam: Any, *actions: str) -> Admin:
    """A new user with rights to these actions alone."""
    user = User(gateway, iam, policy(*actions))
    return Admin(gateway, Key(user.key, user.secret))


def test_rights_are_checked_before_a_body_is_decrypted(gateway: Gateway, iam: Any, name: str) -> None:
    ann = caller(gateway, iam, "s3:*")
    for answer in (
        ann.send("PUT", "add-user", b"garbage", accessKey=name),
        ann.send("POST", "update-service-account", b"garbage", accessKey=ACCESS_KEY),
    ):
        refused(answer, 403, "AccessDenied")


@pytest.mark.parametrize("more", [{"policy": "readwrite"}, {"status": "disabled"}])
def test_a_user_is_made_with_all_rights_or_not_at_all(
    gateway: Gateway, iam: Any, admin: Admin, name: str, more: dict[str, str]
) -> None:
    ann = caller(gateway, iam, "iam:CreateUser", "iam:CreateAccessKey", "iam:ListAccessKeys")
    refused(ann.put("add-user", {"secretKey": "first-secret"} | more, accessKey=name), 403, "AccessDenied")
    assert name not in admin.got("list-users")
    assert ann.put("add-user", {"secretKey": "first-secret"}, accessKey=name).status == 200


def test_the_policy_of_a_new_user_is_a_condition(gateway: Gateway, iam: Any, admin: Admin, name: str) -> None:
    reads = {"ArnEquals": {"iam:PolicyARN": "arn:aws:iam::aws:policy/minio/readonly"}}
    user = User(gateway, iam, policy("iam:*", Condition=reads), policy("iam:Create*", "iam:UpdateAccessKey"))
    ann = Admin(gateway, Key(user.key, user.secret))
    new = {"secretKey": "first-secret", "policy": "readonly,readwrite"}
    refused(ann.put("add-user", new, accessKey=name), 403, "AccessDenied")
    assert name not in admin.got("list-users")
    new = {"secretKey": "first-secret", "policy": "readonly", "status": "disabled"}
    assert ann.put("add-user", new, accessKey=name).status == 200
    assert admin.read("user-info", accessKey=name)["policyName"] == "readonly"
    assert admin.read("user-info", accessKey=name)["status"] == "disabled"


def test_a_policy_of_the_account_goes_before_a_built_in_one(iam: Any, admin: Admin, name: str) -> None:
    built_in = "AmazonS3ReadOnlyAccess"
    own = iam.create_policy(PolicyName=built_in, PolicyDocument=policy("s3:PutObject"))["Policy"]["Arn"]
    aws = f"arn:aws:iam::aws:policy/{built_in}"
    new = {"secretKey": "first-secret", "policy": built_in}
    try:
        assert admin.put("add-user", new, accessKey=name).status == 200
        assert [one["PolicyArn"] for one in iam.list_attached_user_policies(UserName=name)["AttachedPolicies"]] == [own]
        assert admin.read("info-canned-policy", name=built_in)["Statement"]["Action"] == ["s3:PutObject"]
        iam.attach_user_policy(UserName=name, PolicyArn=aws)
        both = {"policies": [built_in], "user": name}
        assert admin.put("idp/builtin/policy/detach", both, "POST").status == 200
        assert iam.list_attached_user_policies(UserName=name)["AttachedPolicies"] == []
        iam.attach_user_policy(UserName=name, PolicyArn=aws)
        assert admin.put("idp/builtin/policy/attach", both, "POST").status == 200
        assert admin.send("DELETE", "remove-user", accessKey=name).status == 200
        assert name not in admin.got("list-users")
        other = policy("s3:GetObject").encode()
        assert admin.send("PUT", "add-canned-policy", other, name=built_in).status == 200
        assert admin.send("DELETE", "remove-canned-policy", name=built_in).status == 200
        own = ""
    finally:
        if own:
            iam.delete_policy(PolicyArn=own)


def test_what_iam_tells_by_other_actions_needs_these(gateway: Gateway, iam: Any, admin: Admin, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret", "policy": "readwrite"}, accessKey=name)
    key = f"{name}-svc"
    admin.put("add-service-account", {"targetUser": name, "accessKey": key, "secretKey": "svc-secret-1"})
    group = {"group": f"{name}-g", "members": [name], "isRemove": False}
    assert admin.send("PUT", "update-group-members", json.dumps(group).encode()).status == 200
    user = User(
        gateway, iam, policy("iam:GetUser", "iam:GetGroup", "iam:ListUsers", "iam:ListGroups", "iam:ListAccessKeys")
    )
    ann = Admin(gateway, Key(user.key, user.secret))
    for answer in (
        ann.send("GET", "user-info", accessKey=name),
        ann.send("GET", "list-users"),
        ann.send("GET", "group", group=f"{name}-g"),
        ann.send("GET", "idp/builtin/policy-entities"),
        ann.send("GET", "info-service-account", accessKey=key),
    ):
        refused(answer, 403, "AccessDenied")
    user.set(policy("iam:Get*", "iam:List*"))
    assert ann.read("user-info", accessKey=name)["policyName"] == "readwrite"
    assert ann.read("group", group=f"{name}-g")["members"] == [name]
    assert name in str(ann.got("idp/builtin/policy-entities"))
    assert ann.got("list-users")[name]["policyName"] == "readwrite"
    assert "s3:*" in ann.got("info-service-account", accessKey=key)["policy"]


def test_names_of_policies_are_not_told_before_rights(gateway: Gateway, iam: Any, admin: Admin, name: str) -> None:
    assert admin.send("PUT", "add-canned-policy", policy("s3:*").encode(), name=name).status == 200
    ann = caller(gateway, iam, "s3:*")
    for one in (name, f"{name}-missing"):
        refused(ann.send("GET", "info-canned-policy", name=one), 403, "AccessDenied")
        refused(ann.send("DELETE", "remove-canned-policy", name=one), 403, "AccessDenied")
    assert admin.send("DELETE", "remove-canned-policy", name=name).status == 200


def test_callers_are_authenticated_and_need_the_rights_of_iam(
    gateway: Gateway, admin: Admin, iam: Any, name: str
) -> None:
    refused(admin.unsigned("GET", "/minio/admin/v3/list-users"), 403, "AccessDenied")
    refused(Admin(gateway, Key(ACCESS_KEY, "wrong")).send("GET", "list-users"), 403, "SignatureDoesNotMatch")
    refused(Admin(gateway, Key("NOSUCHKEY", "x")).send("GET", "list-users"), 403, "InvalidAccessKeyId")
    user = User(gateway, iam, policy("s3:*"))
    ann = Admin(gateway, Key(user.key, user.secret))
    for answer in (
        ann.send("GET", "list-users"),
        ann.send("GET", "user-info", accessKey=user.name),
        ann.put("add-user", {"secretKey": "long-enough"}, accessKey=name),
        ann.send("DELETE", "remove-user", accessKey=user.name),
        ann.send("PUT", "add-canned-policy", policy("*").encode(), name=name),
        ann.put("idp/builtin/policy/attach", {"policies": ["consoleAdmin"], "user": user.name}, "POST"),
        ann.put("add-service-account", {"targetUser": ACCESS_KEY}),
        ann.put("add-service-account", {"targetUser": user.name}),
        ann.send("GET", "list-access-keys-bulk", all="true"),
        ann.send("GET", "groups"),
        ann.send("GET", "info"),
        ann.send("GET", "get-bucket-quota", bucket="any"),
        ann.send("PUT", "set-bucket-quota", b"{}", bucket="any"),
    ):
        refused(answer, 403, "AccessDenied")
    user.set(policy("iam:*"))
    assert user.name in ann.got("list-users")


def test_a_key_of_get_session_token_is_refused_as_by_iam(gateway: Gateway, iam: Any) -> None:
    user = User(gateway, iam, policy("*"))
    made = user.sts.get_session_token()["Credentials"]
    request = Request("GET", "/minio/admin/v3/list-users", headers=(("x-amz-security-token", made["SessionToken"]),))
    key = Key(made["AccessKeyId"], made["SecretAccessKey"])
    with Client(gateway.endpoint) as connection:
        signed = sign_full(request, key, Way(connection.host, region=""))
        refused(connection.ask(signed.request), 403, "InvalidClientTokenId")
