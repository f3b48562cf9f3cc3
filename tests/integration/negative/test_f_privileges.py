"""Group F, with users and sessions: nobody gets more rights than he was given, nor keeps what was taken from him."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from sluice_s3.app.access.iam.service import IAM, NAMES, STS
from tests.integration.negative.checks import cases, xml
from tests.integration.negative.privileges import call, iam, policy, user_with
from tests.integration.negative.site import GROUND, OTHERS, SMALL, Site, content_md5, delete_many, path_of, put
from tests.support.raw_http import Request
from tests.support.signing import Key

ALL = f"arn:aws:s3:::{GROUND}", f"arn:aws:s3:::{GROUND}/*"


def versioned(site: Site) -> tuple[str, str]:
    """A fresh bucket that keeps versions, and the id of an older version of its key `k`."""
    bucket = site.fresh()
    body = xml("VersioningConfiguration", "<Status>Enabled</Status>")
    site.ok(Request("PUT", path_of(bucket), "versioning", body=body))
    old = site.ok(put(bucket, "k", b"old")).headers["x-amz-version-id"]
    site.ok(put(bucket, "k", b"new"))
    return bucket, quote(old, safe="")


def test_f63_versions_need_their_own_right(site: Site) -> None:
    """GHSA-3ppv of RustFS. Reading, its tags, its ACL and attributes, and copying."""
    bucket, old = versioned(site)
    key = user_with(
        site, "s3:GetObject", "s3:GetObjectTagging", "s3:GetObjectAcl", "s3:GetObjectAttributes", "s3:PutObject"
    )
    site.ok(Request("GET", path_of(bucket, "k")), key)
    for query in ("", "&tagging", "&acl"):
        site.refused(
            site.sign(Request("GET", path_of(bucket, "k"), f"versionId={old}{query}"), key), 403, "AccessDenied"
        )
    wanted = ("x-amz-object-attributes", "ETag")
    request = Request("GET", path_of(bucket, "k"), f"attributes&versionId={old}", (wanted,))
    site.refused(site.sign(request, key), 403, "AccessDenied")
    assert site.ask(site.sign(Request("HEAD", path_of(bucket, "k"), f"versionId={old}"), key)).status == 403
    for escaped in (f"?versionId={old}", f"%3FversionId={old}"):
        request = put(bucket, "copy", b"", x_amz_copy_source=f"/{bucket}/k{escaped}")
        assert site.ask(site.sign(request, key)).status in (403, 404), escaped


def test_f63_anonymous_versions(site: Site) -> None:
    """GHSA-x298 of RustFS: a right to list is no right to list versions."""
    bucket, old = versioned(site)
    key = user_with(site, "s3:ListBucket")
    site.ok(Request("GET", path_of(bucket)), key)
    site.refused(site.sign(Request("GET", path_of(bucket), "versions"), key), 403, "AccessDenied")
    site.refused(Request("GET", path_of(bucket), "versions"), 403, "AccessDenied")
    site.refused(Request("GET", path_of(bucket, "k"), f"versionId={old}"), 403, "AccessDenied")


def test_f64_deleting_a_version_needs_its_own_right(site: Site) -> None:
    bucket, old = versioned(site)
    key = user_with(site, "s3:DeleteObject", "s3:ListBucketVersions")
    site.refused(site.sign(Request("DELETE", path_of(bucket, "k"), f"versionId={old}"), key), 403, "AccessDenied")
    body = xml("Delete", f"<Object><Key>k</Key><VersionId>{old}</VersionId></Object>")
    answer = site.ok(Request("POST", path_of(bucket), "delete", (content_md5(body),), body), key)
    assert answer.all("Code") == ["AccessDenied"]
    site.ok(Request("GET", path_of(bucket, "k"), f"versionId={old}"))


def test_f65_a_deny_beats_every_allow(site: Site) -> None:
    """ed1ad6b6 of Versity: also what an ACL would allow."""
    key = user_with(site, "s3:*")
    deny = json.loads(policy("s3:GetObject", resource=list(ALL)))
    deny["Statement"]["Effect"] = "Deny"
    iam(site, "PutUserPolicy", UserName=key.access, PolicyName="deny", PolicyDocument=json.dumps(deny))
    for query in ("", "response-content-type=text%2Fplain", "partNumber=1"):
        site.refused(site.sign(Request("GET", path_of(GROUND, "keep/small"), query), key), 403, "AccessDenied")
    assert site.ask(site.sign(Request("HEAD", path_of(GROUND, "keep/small")), key)).status == 403
    site.refused(site.presign(Request("GET", path_of(GROUND, "keep/small")), key), 403, "AccessDenied")
    bucket = site.fresh()
    copied = put(bucket, "copy", b"", x_amz_copy_source=f"/{GROUND}/keep/small")
    site.refused(site.sign(copied, key), 403, "AccessDenied")


@pytest.mark.parametrize(
    "name",
    **cases(["pub/../keep/small", "pub/./../keep/small", "pub//../keep/small", "pub/%2e%2e/keep/small", "PUB/x"]),
)
def test_f66_keys_are_judged_as_they_are(site: Site, name: str) -> None:
    """cd0b4e6d of Versity: what is judged is what is read."""
    key = user_with(site, "s3:GetObject", "s3:PutObject", resource=f"arn:aws:s3:::{GROUND}/pub/*")
    answer = site.ask(site.sign(Request("GET", f"/{GROUND}/{name}"), key))
    assert answer.status in (400, 403, 404), answer
    assert SMALL not in answer.body


FIELDS = {
    "x-amz-tagging": "a=b",
    "x-amz-acl": "public-read",
    "x-amz-grant-read": 'uri="http://acs.amazonaws.com/groups/global/AllUsers"',
    "x-amz-object-lock-mode": "GOVERNANCE",
    "x-amz-object-lock-legal-hold": "ON",
}


@pytest.mark.parametrize("name", **cases(FIELDS))
def test_f67_fields_that_need_rights_of_their_own(site: Site, name: str) -> None:
    """8d5b2be0 of Versity."""
    key = user_with(site, "s3:PutObject", resource=list(ALL))
    more = [("x-amz-object-lock-retain-until-date", "2099-01-01T00:00:00Z")] if name.endswith("mode") else []
    fields = ((name, FIELDS[name]), *more)
    for request in (put(GROUND, "evil"), Request("POST", path_of(GROUND, "evil"), "uploads")):
        answer = site.ask(site.sign(request.having(*fields), key))
        assert answer.status in (400, 403), answer
        assert answer.code in ("AccessDenied", "AccessControlListNotSupported", "InvalidRequest"), answer


def test_f68_restricted_users_see_nothing(site: Site) -> None:
    key = user_with(site)
    for attack in (*site.attacks(), *site.attacks(OTHERS)):
        answer = site.ask(site.sign(attack, key))
        if attack.query == "delete":
            assert answer.all("Code") == ["AccessDenied"]
        else:
            assert answer.status == 403, (attack, answer)
    site.refused(site.sign(Request("GET", "/"), key), 403, "AccessDenied")
    site.refused(site.sign(Request("PUT", "/fresh-evil"), key), 403, "AccessDenied")


def test_f72_locked_versions(site: Site) -> None:
    """CVE-2021-21362 and GHSA-j548 of its peers: no way round a retention, and none without its right."""
    bucket = site.fresh() + "-locked"
    site.ok(Request("PUT", path_of(bucket), headers=(("x-amz-bucket-object-lock-enabled", "true"),)))
    until = "2099-01-01T00:00:00Z"
    for mode in ("GOVERNANCE", "COMPLIANCE"):
        lock = {"x_amz_object_lock_mode": mode, "x_amz_object_lock_retain_until_date": until}
        made = site.ok(put(bucket, mode, b"kept", **lock).having(content_md5(b"kept")))
        version = quote(made.headers["x-amz-version-id"], safe="")
        key = user_with(site, "s3:PutObject", "s3:DeleteObject", "s3:DeleteObjectVersion", "s3:PutObjectRetention")
        bypass = ("x-amz-bypass-governance-retention", "true")
        path, named = path_of(bucket, mode), f"versionId={version}"
        shorter = xml("Retention", f"<Mode>{mode}</Mode><RetainUntilDate>2098-01-01T00:00:00Z</RetainUntilDate>")
        for who in (key, site.root):
            for request in (
                Request("DELETE", path, named),
                Request("PUT", path, f"retention&{named}", (content_md5(shorter),), shorter),
            ):
                site.refused(site.sign(request, who), 403, "AccessDenied")
                if who is key or mode == "COMPLIANCE":
                    site.refused(site.sign(request.having(bypass), who), 403, "AccessDenied")
        assert site.ok(Request("GET", path, named)).body == b"kept"


def test_f74_delete_objects_asks_for_each_key(site: Site) -> None:
    """CVE-2026-58372 of SeaweedFS: the keys of a body are judged as those of a path."""
    key = user_with(site, "s3:DeleteObject", resource=f"arn:aws:s3:::{GROUND}/mine/*")
    answer = site.ok(delete_many(GROUND, "keep/small", "mine/../keep/small", "mine/none", "../others/secret"), key)
    assert sorted(answer.all("Code")) == ["AccessDenied", "InvalidURI"]
    assert site.get(GROUND, "keep/small") == SMALL


@pytest.fixture(scope="module")
def bucket_user(built: Site) -> Key:
    """Somebody who may do all with buckets, and nothing else."""
    return user_with(built, "s3:*")


@pytest.mark.parametrize("action", **cases(sorted(NAMES[IAM])))
def test_f75_who_may_use_buckets_may_not_use_iam(site: Site, bucket_user: Key, action: str) -> None:
    """CVE-2024-24747, CVE-2024-55949 and CVE-2021-43858 of MinIO: keys and policies of one's own are a right too."""
    name = bucket_user.access
    given = {"UserName": name, "GroupName": "g", "RoleName": "r", "PolicyName": "p", "AccessKeyId": name}
    takes = {name: value for name, value in given.items() if name in _takes(action)}
    answer = call(site, bucket_user, IAM, action, **takes)
    assert (answer.status, b"<Code>AccessDenied</Code>" in answer.body) == (403, True), answer.body
    answer = call(site, None, IAM, action, **takes)
    assert (answer.status, b"MissingAuthenticationToken" in answer.body) == (403, True)


def _takes(action: str) -> frozenset[str]:
    from sluice_s3.app.access.iam.actions import ACTIONS

    return ACTIONS[action].parameters


def test_f75_a_user_does_not_raise_himself(site: Site) -> None:
    """He may manage users of one path, and is not one of them."""
    only = "arn:aws:iam::*:user/staff/*"
    key = user_with(site, "iam:*", resource=only)
    text = policy("*")
    for action, given in (
        ("PutUserPolicy", {"PolicyName": "x", "PolicyDocument": text}),
        ("AttachUserPolicy", {"PolicyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}),
        ("CreateAccessKey", {}),
        ("UpdateUser", {"NewPath": "/staff/"}),
    ):
        answer = call(site, key, IAM, action, UserName=key.access, **given)
        assert b"<Code>AccessDenied</Code>" in answer.body, answer.body
    assert b"AccessDenied" in call(site, key, IAM, "CreateUser", UserName="evil").body
    assert b"AccessDenied" in call(site, key, IAM, "CreateUser", UserName="evil", Path="/other/").body
    # nor does a path of his choice make another path of it
    climbing = call(site, key, IAM, "CreateUser", UserName="evil", Path="/staff/../")
    assert climbing.status in (200, 400, 403)
    iam_users = json.dumps(iam(site, "ListUsers", PathPrefix="/"))
    assert f'"{key.access}"' in iam_users


def test_f75_a_session_does_not_leave_its_limits(site: Site) -> None:
    """CVE-2025-62506 of MinIO: what a session may not, nothing that it makes may."""
    key = user_with(site, "iam:*", "s3:*", "sts:*")
    trust = json.loads(policy("sts:AssumeRole"))
    del trust["Statement"]["Resource"]
    account = call(site, key, STS, "GetCallerIdentity").body.decode().partition("<Account>")[2][:12]
    trust["Statement"]["Principal"] = {"AWS": account}
    name = f"role-{key.access}"
    iam(site, "CreateRole", RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
    iam(site, "PutRolePolicy", RoleName=name, PolicyName="p", PolicyDocument=policy("*"))
    arn = f"arn:aws:iam::{account}:role/{name}"
    limit = policy("s3:ListAllMyBuckets")
    made = call(site, key, STS, "AssumeRole", RoleArn=arn, RoleSessionName="one", Policy=limit).body.decode()
    access, secret, token = (
        made.partition(f"<{field}>")[2].partition("<")[0]
        for field in ("AccessKeyId", "SecretAccessKey", "SessionToken")
    )
    session, carried = Key(access, secret), ("x-amz-security-token", token)

    def asked(request: Request, **way: str) -> int:
        return site.ask_anything(site.sign(request.having(carried), session, **way)).status

    assert asked(Request("GET", "/")) == 200
    assert asked(Request("GET", path_of(GROUND, "keep/small"))) == 403
    for service, action, given in (
        (IAM, "CreateAccessKey", f"&UserName={key.access}"),
        (IAM, "CreateUser", "&UserName=evil"),
        (IAM, "DeleteRolePolicy", f"&RoleName={name}&PolicyName=p"),
        (STS, "AssumeRole", f"&RoleArn={quote(arn, safe='')}&RoleSessionName=two"),
        (STS, "GetSessionToken", ""),
    ):
        form = Request("POST", "/", headers=(("content-type", "application/x-www-form-urlencoded"),))
        body = f"Action={action}&Version=2010-05-08{given}".encode()
        assert asked(form.having(body=body), service=service) == 403, action


def test_f76_origins(site: Site) -> None:
    """CVE-2026-46685 of RustFS, CVE-2020-10753 of Ceph: no credentials for pages, and no line end in a field."""
    bucket = site.fresh()
    rule = "<CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod>{}</CORSRule>"
    document = xml("CORSConfiguration", rule.format("<ExposeHeader>ETag</ExposeHeader>"))
    site.ok(Request("PUT", path_of(bucket), "cors", (content_md5(document),), document))
    site.ok(put(bucket, "k", b"body"))
    for origin in ("https://evil.example.org", "null", "https://a\tb", "*"):
        answer = site.ask(site.sign(Request("GET", path_of(bucket, "k"))).having(("origin", origin)))
        assert answer.headers.get("access-control-allow-credentials", "false") == "false" or (
            answer.headers.get("access-control-allow-origin") != "*"
        ), answer.headers
        assert answer.headers.get("access-control-allow-origin") in ("*", None)
    for broken in ("<ExposeHeader>a&#13;&#10;set-cookie: x</ExposeHeader>", "<ExposeHeader>a&#10;b</ExposeHeader>"):
        document = xml("CORSConfiguration", rule.format(broken))
        request = Request("PUT", path_of(bucket), "cors", (content_md5(document),), document)
        assert site.ask(site.sign(request)).status == 400
    document = xml("CORSConfiguration", rule.format("").replace("*", "https://x&#13;&#10;y: z"))
    request = Request("PUT", path_of(bucket), "cors", (content_md5(document),), document)
    site.ask(site.sign(request))
    answer = site.ask(site.sign(Request("GET", path_of(bucket, "k"))).having(("origin", "https://x")))
    assert "y" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers
