"""MinIO's admin API: the calls of `mc` as it sends them, and minio-py's client, which encrypts for itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import ClientError
from minio.credentials import StaticProvider
from minio.error import MinioAdminException
from minio.minioadmin import MinioAdmin

from sluice_s3.app.encryption.admin_bodies import decrypt
from tests.integration.functional.identities import User, policy
from tests.integration.functional.minio_admin import ROOT, Admin, refused
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway, client
from tests.support.raw_http import Client, Request
from tests.support.signing import Key, Way, sign_full


def s3_of(gateway: Gateway, key: str, secret: str) -> Callable[[], Any]:
    return lambda: client(gateway.endpoint, key, secret).list_buckets()


def test_life_of_a_user(gateway: Gateway, admin: Admin, name: str) -> None:
    new = {"secretKey": "first-secret", "status": "enabled"}
    assert admin.put("add-user", new, accessKey=name).status == 200
    assert admin.read("user-info", accessKey=name)["status"] == "enabled"
    assert admin.put("idp/builtin/policy/attach", {"policies": ["readwrite"], "user": name}, "POST").status == 200
    assert admin.got("list-users")[name] == {
        "policyName": "readwrite",
        "status": "enabled",
        "memberOf": [],
        "updatedAt": admin.read("user-info", accessKey=name)["updatedAt"],
    }
    s3_of(gateway, name, "first-secret")()
    assert admin.put("add-user", {"secretKey": "other-secret", "status": "enabled"}, accessKey=name).status == 200
    s3_of(gateway, name, "other-secret")()
    assert admin.send("PUT", "set-user-status", accessKey=name, status="disabled").status == 200
    assert admin.read("user-info", accessKey=name)["status"] == "disabled"
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        s3_of(gateway, name, "other-secret")()
    assert admin.send("PUT", "set-user-status", accessKey=name, status="enabled").status == 200
    s3_of(gateway, name, "other-secret")()
    group = {"group": f"{name}-group", "members": [name], "isRemove": False}
    assert admin.send("PUT", "update-group-members", json.dumps(group).encode()).status == 200
    assert admin.send("DELETE", "remove-user", accessKey=name).status == 200
    assert name not in admin.got("list-users")
    refused(admin.send("GET", "user-info", accessKey=name), 404, "XMinioAdminNoSuchUser")
    refused(admin.send("DELETE", "remove-user", accessKey=name), 404, "XMinioAdminNoSuchUser")


def test_a_user_that_cannot_be_made_leaves_nothing(admin: Admin, name: str) -> None:
    refused(admin.put("add-user", {"secretKey": "short"}, accessKey=name), 400, "InvalidArgument")
    refused(admin.put("add-user", {"secretKey": "long-enough"}, accessKey=ACCESS_KEY), 409, "EntityAlreadyExists")
    refused(admin.put("add-user", {"secretKey": "long-enough", "colour": 1}, accessKey=name), 501, "NotImplemented")
    refused(admin.send("PUT", "add-user", b"{}", accessKey=name), 400, "InvalidArgument")
    refused(admin.put("add-user", {"secretKey": "long-enough"}), 400, "InvalidArgument")
    assert {name, ACCESS_KEY}.isdisjoint(admin.got("list-users"))


def test_a_name_in_another_case_is_no_other_user(gateway: Gateway, admin: Admin, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret", "policy": "readwrite"}, accessKey=name)
    other = name.upper()
    refused(admin.put("add-user", {"secretKey": "other-secret"}, accessKey=other), 409, "EntityAlreadyExists")
    for answer in (
        admin.send("GET", "user-info", accessKey=other),
        admin.send("PUT", "set-user-status", accessKey=other, status="disabled"),
        admin.send("DELETE", "remove-user", accessKey=other),
        admin.put("add-service-account", {"targetUser": other}),
    ):
        refused(answer, 404, "XMinioAdminNoSuchUser")
    s3_of(gateway, name, "first-secret")()


def test_policies_come_change_and_go(gateway: Gateway, admin: Admin, s3: Any, bucket: str, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret"}, accessKey=name)
    reads = policy("s3:ListBucket", resource=f"arn:aws:s3:::{bucket}").encode()
    assert admin.send("PUT", "add-canned-policy", reads, name=name).status == 200
    assert admin.read("info-canned-policy", name=name) == json.loads(reads)
    whole = admin.read("info-canned-policy", name=name, v="2")
    assert (whole["PolicyName"], whole["Policy"]) == (name, json.loads(reads))
    body = {"policies": [name, "writeonly"], "user": name}
    attached = admin.put("idp/builtin/policy/attach", body, "POST")
    assert json.loads(decrypt(SECRET_KEY, attached.body))["policiesAttached"] == [name, "writeonly"]
    again = admin.put("idp/builtin/policy/attach", body, "POST")
    refused(again, 400, "XMinioAdminPolicyChangeAlreadyApplied")
    user = client(gateway.endpoint, name, "first-secret")
    user.list_objects_v2(Bucket=bucket)
    user.put_object(Bucket=bucket, Key="k", Body=b"x")
    with pytest.raises(ClientError, match="AccessDenied"):
        user.get_object(Bucket=bucket, Key="k")
    for _ in range(7):  # more than a policy of IAM has versions
        assert admin.send("PUT", "add-canned-policy", policy("s3:GetObject").encode(), name=name).status == 200
    user.get_object(Bucket=bucket, Key="k")
    entities = admin.got("idp/builtin/policy-entities", policy=name)["policyMappings"]
    assert entities == [{"policy": name, "users": [name], "groups": []}]
    assert admin.got("idp/builtin/policy-entities", user=name)["userMappings"] == [
        {"user": name, "policies": sorted([name, "writeonly"])}
    ]
    refused(admin.send("DELETE", "remove-canned-policy", name=name), 400, "XMinioAdminPolicyInUse")
    assert admin.put("idp/builtin/policy/detach", body, "POST").status == 200
    refused(admin.put("idp/builtin/policy/detach", body, "POST"), 400, "XMinioAdminPolicyChangeAlreadyApplied")
    assert admin.send("DELETE", "remove-canned-policy", name=name).status == 200
    for answer in (
        admin.send("GET", "info-canned-policy", name=name),
        admin.send("DELETE", "remove-canned-policy", name=name),
        admin.put("idp/builtin/policy/attach", {"policies": [name], "user": name}, "POST"),
    ):
        refused(answer, 404, "XMinioAdminNoSuchPolicy")


def test_built_in_policies(admin: Admin) -> None:
    found = admin.read("list-canned-policies")
    assert {"readonly", "readwrite", "writeonly", "diagnostics", "consoleAdmin"} <= found.keys()
    assert found["readonly"]["Statement"][0]["Action"] == ["s3:GetBucketLocation", "s3:GetObject"]
    assert admin.read("info-canned-policy", name="readwrite", v="2")["Policy"] == found["readwrite"]
    refused(
        admin.send("PUT", "add-canned-policy", policy("s3:*").encode(), name="readonly"), 409, "EntityAlreadyExists"
    )
    refused(admin.send("DELETE", "remove-canned-policy", name="readonly"), 400, "XMinioAdminPolicyInUse")


def test_malformed_policies_are_refused(admin: Admin, name: str) -> None:
    for body in (b"", b"{", b"\xff", b'{"Version":"2012-10-17"}'):
        assert admin.send("PUT", "add-canned-policy", body, name=name).status == 400
    assert name not in admin.read("list-canned-policies")


def test_service_accounts(gateway: Gateway, admin: Admin, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret", "policy": "readwrite"}, accessKey=name)
    key = f"{name}-svc"
    made = admin.put("add-service-account", {"targetUser": name, "accessKey": key, "secretKey": "svc-secret-1"})
    told = json.loads(decrypt(SECRET_KEY, made.body))["credentials"]
    assert (told["accessKey"], told["secretKey"]) == (key, "svc-secret-1")
    s3_of(gateway, key, "svc-secret-1")()
    generated = json.loads(decrypt(SECRET_KEY, admin.put("add-service-account", {"targetUser": name}).body))
    other = generated["credentials"]["accessKey"]
    s3_of(gateway, other, generated["credentials"]["secretKey"])()
    accounts = admin.got("list-service-accounts", user=name)["accounts"]
    assert {one["accessKey"] for one in accounts} == {key, other}
    assert {one["parentUser"] for one in accounts} == {name}
    bulk = admin.got("list-access-keys-bulk", listType="all", users=name)
    assert {one["accessKey"] for one in bulk[name]["serviceAccounts"]} == {key, other}
    assert name in admin.got("list-access-keys-bulk", listType="all", all="true")
    info = admin.got("info-service-account", accessKey=key)
    assert (info["parentUser"], info["accountStatus"], info["impliedPolicy"]) == (name, "on", True)
    assert json.loads(info["policy"])["Statement"][0]["Action"] == ["s3:*"]
    assert admin.got("info-access-key", accessKey=key)["userProvider"] == "builtin"
    changed = {"newSecretKey": "svc-secret-2", "newStatus": "off"}
    assert admin.put("update-service-account", changed, "POST", accessKey=key).status == 204
    assert admin.got("info-service-account", accessKey=key)["accountStatus"] == "off"
    assert admin.put("update-service-account", {"newStatus": "on"}, "POST", accessKey=key).status == 204
    s3_of(gateway, key, "svc-secret-2")()
    assert admin.send("DELETE", "delete-service-account", accessKey=key).status == 204
    for answer in (
        admin.send("GET", "info-service-account", accessKey=key),
        admin.send("DELETE", "delete-service-account", accessKey=key),
        admin.send("DELETE", "delete-service-account", accessKey=name),  # the user's own
        admin.send("DELETE", "delete-service-account", accessKey=ACCESS_KEY),
    ):
        refused(answer, 404, "XMinioInvalidIAMCredentials")
    refused(admin.put("add-service-account", {"targetUser": "nobody"}), 404, "XMinioAdminNoSuchUser")


@pytest.mark.parametrize(
    "more", [{"policy": {"Statement": []}}, {"name": "n"}, {"description": "d"}, {"expiration": "2999-01-01T00:00:00Z"}]
)
def test_what_a_service_account_cannot_have_is_refused(admin: Admin, more: dict[str, Any]) -> None:
    answer = admin.put("add-service-account", {"accessKey": "never-made", "secretKey": "svc-secret-1", **more})
    assert "not MinIO's admin API" in refused(answer, 501, "NotImplemented")
    refused(admin.send("GET", "info-service-account", accessKey="never-made"), 404, "XMinioInvalidIAMCredentials")


def test_an_enabled_user_has_its_own_key_alone(gateway: Gateway, admin: Admin, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret", "policy": "readwrite"}, accessKey=name)
    key = f"{name}-svc"
    admin.put("add-service-account", {"targetUser": name, "accessKey": key, "secretKey": "svc-secret-1"})
    admin.send("PUT", "set-user-status", accessKey=name, status="disabled")
    assert admin.got("info-service-account", accessKey=key)["accountStatus"] == "off"
    admin.put("update-service-account", {"newStatus": "on"}, "POST", accessKey=key)
    assert admin.read("user-info", accessKey=name)["status"] == "disabled"
    admin.put("update-service-account", {"newStatus": "off"}, "POST", accessKey=key)
    assert admin.send("PUT", "set-user-status", accessKey=name, status="enabled").status == 200
    s3_of(gateway, name, "first-secret")()
    assert admin.read("user-info", accessKey=name)["status"] == "enabled"
    assert admin.got("info-service-account", accessKey=key)["accountStatus"] == "off"


def test_a_user_without_a_key_of_its_name_is_not_enabled(gateway: Gateway, admin: Admin, iam: Any) -> None:
    user = User(gateway, iam)
    assert admin.send("PUT", "set-user-status", accessKey=user.name, status="disabled").status == 200
    assert admin.read("user-info", accessKey=user.name)["status"] == "disabled"
    answer = admin.send("PUT", "set-user-status", accessKey=user.name, status="enabled")
    refused(answer, 404, "XMinioInvalidIAMCredentials")


def test_times_need_a_zone_and_zero_is_never(admin: Admin, name: str) -> None:
    body = {"accessKey": name, "secretKey": "svc-secret-1"}
    for time_without_zone in ("0001-01-01T00:00:00", "2999-01-01T00:00:00"):
        refused(admin.put("add-service-account", body | {"expiration": time_without_zone}), 400, "InvalidArgument")
    assert admin.put("add-service-account", body | {"expiration": "0001-01-01T00:00:00Z"}).status == 200
    change = {"newExpiration": "0001-01-01T00:00:00"}
    refused(admin.put("update-service-account", change, "POST", accessKey=name), 400, "InvalidArgument")
    assert admin.send("DELETE", "delete-service-account", accessKey=name).status == 204


def test_service_accounts_of_the_account_itself(gateway: Gateway, admin: Admin, name: str) -> None:
    body = {"targetUser": ACCESS_KEY, "accessKey": name, "secretKey": "svc-secret-1"}
    assert admin.put("add-service-account", body).status == 200
    s3_of(gateway, name, "svc-secret-1")()
    accounts = admin.got("list-service-accounts", user="")["accounts"]
    assert {one["accessKey"]: one["parentUser"] for one in accounts}[name] == ACCESS_KEY
    assert "AdministratorAccess" not in admin.got("info-service-account", accessKey=name)["policy"]
    assert admin.send("DELETE", "delete-service-account", accessKey=name).status == 204


def test_groups(admin: Admin, name: str) -> None:
    admin.put("add-user", {"secretKey": "first-secret"}, accessKey=name)
    group = {"group": f"{name}-g", "members": [name], "groupStatus": "enabled", "isRemove": False}
    assert admin.send("PUT", "update-group-members", json.dumps(group).encode()).status == 200
    assert (
        admin.put("idp/builtin/policy/attach", {"policies": ["readonly"], "group": f"{name}-g"}, "POST").status == 200
    )
    told = admin.read("group", group=f"{name}-g")
    assert (told["members"], told["policy"], told["status"]) == ([name], "readonly", "enabled")
    assert f"{name}-g" in admin.read("groups")
    assert admin.read("user-info", accessKey=name)["memberOf"] == [f"{name}-g"]
    whole = json.dumps({**group, "members": [], "isRemove": True}).encode()
    assert admin.send("PUT", "update-group-members", whole).status == 409
    assert admin.send("PUT", "update-group-members", json.dumps({**group, "isRemove": True}).encode()).status == 200
    assert admin.send("PUT", "update-group-members", whole).status == 200
    refused(admin.send("GET", "group", group=f"{name}-g"), 404, "XMinioAdminNoSuchGroup")


def test_quotas(admin: Admin, s3: Any, bucket: str) -> None:
    assert admin.read("get-bucket-quota", bucket=bucket)["size"] == 0
    body = json.dumps({"quota": 5, "size": 0, "rate": 0, "requests": 0, "quotatype": "hard"}).encode()
    assert admin.send("PUT", "set-bucket-quota", body, bucket=bucket).status == 200
    assert admin.read("get-bucket-quota", bucket=bucket) == {
        "quota": 5, "size": 5, "rate": 0, "requests": 0, "quotatype": "hard"}  # fmt: skip
    with pytest.raises(ClientError, match="QuotaExceeded"):
        s3.put_object(Bucket=bucket, Key="k", Body=b"123456")
    assert admin.send("PUT", "set-bucket-quota", b'{"size":0,"rate":0,"requests":0}', bucket=bucket).status == 200
    s3.put_object(Bucket=bucket, Key="k", Body=b"123456")
    refused(admin.send("PUT", "set-bucket-quota", b'{"size":1,"rate":5}', bucket=bucket), 501, "NotImplemented")
    refused(
        admin.send("PUT", "set-bucket-quota", b'{"size":1,"quotatype":"fifo"}', bucket=bucket), 501, "NotImplemented"
    )
    refused(admin.send("PUT", "set-bucket-quota", b'{"size":-1}', bucket=bucket), 400, "InvalidArgument")
    refused(admin.send("GET", "get-bucket-quota", bucket="no-such-bucket-here"), 404, "NoSuchBucket")


def test_info(admin: Admin, bucket: str, s3: Any) -> None:
    s3.put_object(Bucket=bucket, Key="k", Body=b"123456")
    told = admin.read("info")
    assert told["mode"] == "online"
    assert told["buckets"]["count"] >= 1
    assert told["usage"]["size"] >= 6
    (server,) = told["servers"]
    assert server["drives"][0]["totalspace"] > 0


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "config"),
        ("POST", "service"),
        ("POST", "heal/bucket"),
        ("GET", "add-user"),
        ("PUT", "set-group-status"),
        ("GET", "accountinfo"),
        ("GET", "%2e%2e"),
        ("GET", "config/../info"),
    ],
)
def test_what_is_not_there_says_so(admin: Admin, method: str, path: str) -> None:
    wrong = Admin.__new__(Admin)
    wrong.host, wrong.key = admin.host, Key("NOSUCHKEY", "x")
    for answer in (admin.send(method, path), wrong.send(method, path), admin.send(method, path, region="us-east-1")):
        assert "this is not MinIO's admin API" in refused(answer, 501, "NotImplemented")


@pytest.mark.parametrize(
    "path", ["/minio/admin/", "/minio/admin/v2/info", "/minio/kms/v1/status", "/minio/admin/v9/info"]
)
def test_other_versions_and_other_apis_are_not_there(admin: Admin, path: str) -> None:
    assert "this is not MinIO's admin API" in refused(admin.unsigned("GET", path), 501, "NotImplemented")


def test_watching_a_bucket_is_not_there(gateway: Gateway, bucket: str) -> None:
    signed = sign_full(
        Request("GET", f"/{bucket}", "events=a&prefix=&suffix="), ROOT, Way(urlsplit(gateway.endpoint).netloc)
    )
    with Client(gateway.endpoint) as connection:
        refused(connection.ask(signed.request), 501, "NotImplemented")


def test_another_account_has_users_of_its_own_and_no_quotas(
    gateway: Gateway, other: Any, admin: Admin, name: str
) -> None:
    theirs = Admin(gateway, Key("OTHERKEY", "other-secret-0123"))
    assert theirs.put("add-user", {"secretKey": "long-enough"}, accessKey=name).status == 200
    assert name in theirs.got("list-users")
    assert name not in admin.got("list-users")
    for answer in (
        theirs.send("GET", "info"),
        theirs.send("PUT", "set-bucket-quota", b'{"size":1}', bucket="any"),
    ):
        assert "operates this gateway" in refused(answer, 403, "AccessDenied")


def test_a_console_admin_does_all_of_it(gateway: Gateway, admin: Admin, bucket: str, name: str) -> None:
    admin.put("add-user", {"secretKey": "long-enough", "policy": "consoleAdmin"}, accessKey=name)
    boss = Admin(gateway, Key(name, "long-enough"))
    assert name in boss.got("list-users")
    assert boss.read("info")["mode"] == "online"
    assert boss.send("PUT", "set-bucket-quota", b'{"size":9}', bucket=bucket).status == 200
    assert boss.put("add-user", {"secretKey": "long-enough"}, accessKey=f"{name}-2").status == 200
    assert [one["accessKey"] for one in boss.got("list-service-accounts")["accounts"]] == []
    assert ACCESS_KEY not in boss.got("list-access-keys-bulk", all="true")
    for answer in (  # but what is the account's own
        boss.put("add-service-account", {"targetUser": ACCESS_KEY}),
        boss.send("GET", "list-service-accounts", user=ACCESS_KEY),
        boss.send("DELETE", "delete-service-account", accessKey=ACCESS_KEY),
    ):
        refused(answer, 403, "AccessDenied")


def test_the_client_of_minio_py(gateway: Gateway, bucket: str, name: str) -> None:
    minio = MinioAdmin(endpoint=urlsplit(gateway.endpoint).netloc, credentials=StaticProvider(*ROOT), secure=False)
    minio.user_add(name, "first-secret")
    assert name in json.loads(minio.user_list())
    minio.policy_add(name, policy=json.loads(policy("s3:GetObject")))
    assert name in json.loads(minio.policy_list())
    assert json.loads(minio.policy_info(name))["Statement"]["Action"] == ["s3:GetObject"]
    minio.policy_set(f"{name},readwrite", user=name)
    minio.policy_set("readwrite", user=name)
    assert json.loads(minio.user_info(name))["policyName"] == "readwrite"
    minio.attach_policy([name], user=name)
    assert json.loads(minio.get_policy_entities([name], [], []))["userMappings"][0]["user"] == name
    minio.detach_policy([name], user=name)
    minio.policy_remove(name)
    made = json.loads(minio.add_service_account(access_key=f"{name}-svc", secret_key="svc-secret-1"))
    assert made["credentials"]["accessKey"] == f"{name}-svc"
    assert json.loads(minio.get_service_account(f"{name}-svc"))["parentUser"] == ACCESS_KEY
    minio.update_service_account(access_key=f"{name}-svc", status="off")
    minio.delete_service_account(f"{name}-svc")
    minio.bucket_quota_set(bucket, 1000)
    assert json.loads(minio.bucket_quota_get(bucket))["quota"] == 1000
    minio.bucket_quota_clear(bucket)
    assert json.loads(minio.info())["mode"] == "online"
    minio.user_disable(name)
    minio.user_enable(name)
    minio.user_remove(name)
    with pytest.raises(MinioAdminException, match="admin API: GET top/locks is not implemented"):
        minio.top_locks()
