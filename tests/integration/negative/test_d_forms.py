"""Group D: uploads by HTML forms. Whatever is wrong with one, nothing is stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.privileges import iam, user_with
from tests.integration.negative.site import GROUND, OTHERS, Site, path_of
from tests.support.raw_http import Request
from tests.support.signing import Key, Way, sign_policy

BOUNDARY = "b0undary"
FORM = ("content-type", f"multipart/form-data; boundary={BOUNDARY}")
ANY_KEY = ["starts-with", "$key", ""]
Fields = dict[str, str]


def text_of(conditions: Sequence[Any], seconds: float = 600) -> str:
    expiration = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + seconds))
    return json.dumps({"expiration": expiration, "conditions": list(conditions)})


def signed(policy: str, key: Key, **scope: str) -> Fields:
    """The fields that sign a policy with version 4."""
    return sign_policy(policy, key, Way("", **scope))


def part(name: str, value: str, filename: str | None = None) -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    head = f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"{named}\r\n\r\n'
    return f"{head}{value}\r\n".encode()


def body(fields: Fields, file: str = "evil", filename: str = "a.txt", after: Fields | None = None) -> bytes:
    parts = [part(name, value) for name, value in fields.items()]
    parts.append(part("file", file, filename))
    parts += [part(name, value) for name, value in (after or {}).items()]
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def post(bucket: str, content: bytes) -> Request:
    return Request("POST", path_of(bucket), headers=(FORM,), body=content)


def sign(site: Site, conditions: Sequence[Any], fields: Fields, key: Key | None = None) -> Fields:
    """Fields with a signature over these conditions and those that the signature's own fields need."""
    own = signed("", key or site.root)
    exempt = [["eq", f"${name}", own[name]] for name in ("x-amz-algorithm", "x-amz-credential")]
    exempt.append(["starts-with", "$x-amz-date", ""])
    return {**fields, **signed(text_of([*conditions, *exempt]), key or site.root)}


def good(site: Site, bucket: str = GROUND, **fields: str) -> Fields:
    """The fields of a form without fault."""
    return sign(site, [{"bucket": bucket}, ANY_KEY], {"key": "evil", **fields})


def test_d40_a_form_without_fault_is_taken(site: Site) -> None:
    """Else the refusals below would say nothing."""
    bucket = site.fresh()
    assert site.ask(post(bucket, body(good(site, bucket)))).status == 204
    assert site.keys(bucket) == ["evil"]


def test_d40_policies_that_are_over_or_none(site: Site) -> None:
    for policy, code in (
        (text_of([{"bucket": GROUND}, ANY_KEY], seconds=-1), "AccessDenied"),
        ("", "InvalidArgument"),
        ("nonsense", "InvalidPolicyDocument"),
        ("[]", "InvalidPolicyDocument"),
        ("{}", "InvalidPolicyDocument"),
    ):
        answer = site.ask(post(GROUND, body({"key": "evil", **signed(policy, site.root)})))
        assert (answer.status in (400, 403), answer.code) == (True, code)
    fields = good(site) | {"policy": "%%% no base64 %%%"}
    site.refused(post(GROUND, body(fields)), 403, "SignatureDoesNotMatch")


CHANGES: dict[str, Callable[[Site, Fields], Fields]] = {
    "another policy": lambda site, form: form | {"policy": good(site, OTHERS)["policy"]},
    "another secret": lambda site, form: form | {"x-amz-signature": good(site)["x-amz-signature"][::-1]},
    "one bit": lambda site, form: form | {"x-amz-signature": f"{int(form['x-amz-signature'], 16) ^ 1:064x}"},
    "empty": lambda site, form: form | {"x-amz-signature": ""},
    "short": lambda site, form: form | {"x-amz-signature": form["x-amz-signature"][:10]},
    "no hex": lambda site, form: form | {"x-amz-signature": "é" * 32},
    "of another": lambda site, form: sign(site, [{"bucket": GROUND}, ANY_KEY], {"key": "evil"}, site.other),
    "another's key id": lambda site, form: (
        form | {"x-amz-credential": form["x-amz-credential"].replace(site.root.access, site.other.access)}
    ),
    "unknown key id": lambda site, form: (
        form | {"x-amz-credential": form["x-amz-credential"].replace(site.root.access, "NOBODY")}
    ),
    "another day": lambda site, form: {**form, **signed(text_of([ANY_KEY]), site.root, day="20200101")},
    "another region": lambda site, form: {**form, **signed(text_of([ANY_KEY]), site.root, region="eu-west-1")},
    "another service": lambda site, form: {**form, **signed(text_of([ANY_KEY]), site.root, service="iam")},
    "no algorithm": lambda site, form: {name: value for name, value in form.items() if name != "x-amz-algorithm"},
    "no policy": lambda site, form: {name: value for name, value in form.items() if name != "policy"},
    "no date": lambda site, form: {name: value for name, value in form.items() if name != "x-amz-date"},
}


@pytest.mark.parametrize("change", **cases(CHANGES))
def test_d41_signatures(site: Site, change: str) -> None:
    answer = site.ask(post(GROUND, body(CHANGES[change](site, good(site)))))
    assert answer.status in (400, 403), answer
    assert answer.code in (
        "SignatureDoesNotMatch",
        "AccessDenied",
        "InvalidAccessKeyId",
        "InvalidArgument",
        "AuthorizationQueryParametersError",
    )


def test_d42_of_another_bucket(site: Site) -> None:
    """CVE-2023-43040 of Ceph: the bucket that a form is posted to must be the one of its policy."""
    elsewhere = sign(site, [{"bucket": OTHERS}, ANY_KEY], {"key": "evil"})
    site.refused(post(GROUND, body(elsewhere)), 403, "AccessDenied")
    for named in (OTHERS, GROUND):
        site.refused(post(GROUND, body({"bucket": named, **elsewhere})), 403, "AccessDenied")
    none = sign(site, [ANY_KEY], {"key": "evil"})
    site.refused(post(GROUND, body(none)), 403, "AccessDenied")
    site.refused(post(OTHERS, body(good(site, OTHERS))), 403, "AccessDenied")


@pytest.mark.parametrize("key", **cases(["evil", "pubx/evil", "PUB/evil", "/pub/evil", "pub", " pub/evil", "pub%2Fx"]))
def test_d43_keys_that_the_policy_does_not_allow(site: Site, key: str) -> None:
    site.refused(
        post(GROUND, body(sign(site, [{"bucket": GROUND}, ["starts-with", "$key", "pub/"]], {"key": key}))),
        403,
        "AccessDenied",
    )


@pytest.mark.parametrize("name", **cases(["../../x", "..", "/etc/passwd", "..\\..\\x", "pub/../../../x", ""]))
def test_d43_names_of_files_that_climb(site: Site, name: str) -> None:
    bucket = site.fresh()
    fields = sign(site, [{"bucket": bucket}, ["starts-with", "$key", "pub/"]], {"key": "pub/${filename}"})
    answer = site.ask(post(bucket, body(fields, filename=name)))
    stored = site.keys(bucket)
    assert (answer.status, stored) in ((400, []), (403, [])) or (
        answer.status == 204 and stored[0].startswith("pub/") and "../.." not in stored[0]
    ), (answer, stored)


@pytest.mark.parametrize("size", [0, 4, 11, 100_000])
def test_d44_sizes(site: Site, size: int) -> None:
    fields = sign(site, [{"bucket": GROUND}, ANY_KEY, ["content-length-range", 5, 10]], {"key": "evil"})
    code = "EntityTooSmall" if size < 5 else "EntityTooLarge"
    site.refused(post(GROUND, body(fields, file="x" * size)), 400, code)


def test_d44_a_size_that_is_lied_about(site: Site) -> None:
    fields = sign(site, [{"bucket": GROUND}, ANY_KEY, ["content-length-range", 0, 10]], {"key": "evil"})
    content = body(fields, file="x" * 100)
    lied = content.replace(
        b'name="file"; filename="a.txt"\r\n', b'name="file"; filename="a.txt"\r\ncontent-length: 5\r\n'
    )
    site.refused(post(GROUND, lied), 400, "EntityTooLarge")
    with site.connect() as connection:  # shorter than it says: the client goes away
        connection.send(
            Request("POST", path_of(GROUND), headers=(FORM,), body=content[:-60], length=len(content)).wire(site.host)
        )


EXTRA = {
    "acl": "public-read",
    "x-amz-acl": "public-read",
    "x-amz-meta-a": "b",
    "content-type": "text/html",
    "tagging": "<Tagging><TagSet/></Tagging>",
    "x-amz-storage-class": "STANDARD",
    "success_action_status": "200",
    "success_action_redirect": "https://evil.example.org/",
    "x-amz-object-lock-mode": "COMPLIANCE",
    "x-amz-security-token": "token",
    "x-amz-website-redirect-location": "https://evil.example.org/",
    "cache-control": "public",
}


@pytest.mark.parametrize("name", **cases(EXTRA))
def test_d45_fields_that_the_policy_does_not_name(site: Site, name: str) -> None:
    """CVE-2026-27607 of RustFS: each field but the exempt needs a condition."""
    answer = site.ask(post(GROUND, body(good(site) | {name: EXTRA[name]})))
    assert answer.status in (400, 403), answer
    assert answer.code in ("AccessDenied", "InvalidToken", "InvalidArgument"), answer


def test_d46_fields_behind_the_file(site: Site) -> None:
    """They say nothing: neither the key, nor the signature, nor anything of the object."""
    fields = good(site)
    for missing in ("key", "policy", "x-amz-signature"):
        front = {name: value for name, value in fields.items() if name != missing}
        answer = site.ask(post(GROUND, body(front, after={missing: fields[missing]})))
        assert answer.status in (400, 403), (missing, answer)
    bucket = site.fresh()
    more = {"key": "other", "acl": "public-read", "x-amz-meta-a": "b"}
    assert site.ask(post(bucket, body(good(site, bucket), after=more))).status == 204
    assert site.keys(bucket) == ["evil"]


BROKEN: dict[str, Callable[[bytes], tuple[tuple[str, str], bytes]]] = {
    "a field of a megabyte": lambda content: (FORM, part("x-ignore-a", "a" * 1_000_000) + content),
    "ten thousand fields": lambda content: (FORM, b"".join(part(f"x-ignore-{n}", "") for n in range(10_000)) + content),
    "no boundary": lambda content: (("content-type", "multipart/form-data"), content),
    "another boundary": lambda content: (("content-type", "multipart/form-data; boundary=x"), content),
    "a long boundary": lambda content: (("content-type", f"multipart/form-data; boundary={'b' * 300}"), content),
    "nested": lambda content: (
        ("content-type", "multipart/form-data; boundary=outer"),
        b'--outer\r\ncontent-disposition: form-data; name="policy"\r\n'
        + f"content-type: multipart/mixed; boundary={BOUNDARY}\r\n\r\n".encode()
        + content
        + b"\r\n--outer--\r\n",
    ),
    "no end": lambda content: (FORM, content[:-20]),
    "a head without end": lambda content: (FORM, content.replace(b"\r\n\r\n", b"\r\n", 1)),
    "a head of a megabyte": lambda content: (
        FORM,
        content.replace(b'form-data; name="key"', b'form-data; name="key"\r\nx-a: ' + b"a" * 1_000_000, 1),
    ),
    "urlencoded": lambda content: (("content-type", "application/x-www-form-urlencoded"), content),
}


@pytest.mark.parametrize("how", **cases(BROKEN))
def test_d47_forms_that_are_none(site: Site, how: str) -> None:
    field, content = BROKEN[how](body(good(site)))
    answer = site.ask(Request("POST", path_of(GROUND), headers=(field,), body=content))
    assert answer.status in (400, 403, 412), answer


@pytest.mark.parametrize("key", **cases(["", "..", "../x", "a/../../x", "x" * 1025]))
def test_d48_keys_that_are_none(site: Site, key: str) -> None:
    answer = site.ask(post(GROUND, body(sign(site, [{"bucket": GROUND}, ANY_KEY], {"key": key}))))
    assert answer.status == 400, answer


REDIRECTS = ["javascript:alert(1)", "//evil.example.org", "data:text/html,x", "ftp://x/", "x", "https://", "http://[x"]


@pytest.mark.parametrize("where", **cases(REDIRECTS))
def test_d49_places_that_a_browser_must_not_be_sent_to(site: Site, where: str) -> None:
    bucket = site.fresh()
    conditions = [{"bucket": bucket}, ANY_KEY, ["starts-with", "$success_action_redirect", ""]]
    answer = site.ask(post(bucket, body(sign(site, conditions, {"key": "k", "success_action_redirect": where}))))
    assert answer.status in (204, 400), answer
    assert "javascript" not in answer.headers.get("location", "")
    assert answer.headers.get("location", site.host).find(site.host) >= 0


def test_d49_line_ends_in_a_redirect(site: Site) -> None:
    bucket = site.fresh()
    where = "https://example.org/\r\nset-cookie: a=b"
    conditions = [{"bucket": bucket}, ANY_KEY, ["starts-with", "$success_action_redirect", ""]]
    answer = site.ask(post(bucket, body(sign(site, conditions, {"key": "k", "success_action_redirect": where}))))
    assert "set-cookie" not in answer.headers
    assert "\n" not in answer.headers.get("location", "")


def test_d50_a_signer_without_the_right(site: Site) -> None:
    """CVE-2021-21362 of MinIO: a policy that only reads is no right to post."""
    for actions in (["s3:GetObject", "s3:ListBucket"], [], ["s3:PutObjectAcl", "s3:PutObjectTagging"]):
        key = user_with(site, *actions)
        site.refused(
            post(GROUND, body(sign(site, [{"bucket": GROUND}, ANY_KEY], {"key": "evil"}, key))), 403, "AccessDenied"
        )
    reader = user_with(site)
    iam(site, "AttachUserPolicy", UserName=reader.access, PolicyArn="arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess")
    fields = sign(site, [{"bucket": GROUND}, ANY_KEY], {"key": "evil"}, reader)
    site.refused(post(GROUND, body(fields)), 403, "AccessDenied")
