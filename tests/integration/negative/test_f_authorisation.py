"""Group F, as far as there are accounts and no policies yet: what is another's stays another's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.integration.negative.checks import cases, xml
from tests.integration.negative.site import (
    GROUND,
    OTHERS,
    PART_ETAG,
    SECRET_BODY,
    SMALL,
    Site,
    content_md5,
    delete_many,
    path_of,
    put,
)
from tests.support.raw_http import Request
from tests.support.signing import Key

COMPLETE = xml("CompleteMultipartUpload", f"<Part><PartNumber>1</PartNumber><ETag>{PART_ETAG}</ETag></Part>")


def test_d40_forms(site: Site) -> None:
    """Neither a form without a signature nor one with a bad one, nor one beside another signature, stores anything."""
    unsigned = {"key": "evil", "file": "evil"}
    for fields, status, code in (
        (unsigned, 403, "AccessDenied"),
        ({"policy": "e30=", **unsigned}, 400, "InvalidArgument"),
        ({"policy": "e30=", "x-amz-algorithm": "AWS4-HMAC-SHA256", **unsigned}, 400, "InvalidArgument"),
        (
            {"policy": "e30=", "AWSAccessKeyId": site.root.access, "signature": "AAAA", **unsigned},
            403,
            "SignatureDoesNotMatch",
        ),
    ):
        form = "".join(f'--b\r\ncontent-disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields.items())
        content_type = ("content-type", "multipart/form-data; boundary=b")
        request = Request("POST", path_of(GROUND), headers=(content_type,), body=(form + "--b--\r\n").encode())
        site.refused(request, status, code)
        site.refused(site.sign(request), 400, "InvalidArgument")


def copy(bucket: str, key: str, source: str, **fields: str) -> Request:
    return put(bucket, key, b"", x_amz_copy_source=source, **fields)


def test_f62_copy_from_anothers_bucket(site: Site) -> None:
    part = Request("PUT", path_of(GROUND, "keep/upload"), f"partNumber=2&uploadId={site.upload}")
    for source in (
        f"/{OTHERS}/secret",
        f"{OTHERS}/secret",
        f"{OTHERS}%2Fsecret",
        f"/{OTHERS}/none",
        f"//{OTHERS}/secret",
    ):
        answer = site.ask(site.sign(copy(GROUND, "evil", source)))
        assert answer.code in ("AccessDenied", "InvalidArgument"), answer
        answer = site.ask(site.sign(part.having(("x-amz-copy-source", source))))
        assert answer.code in ("AccessDenied", "InvalidArgument"), answer
        ranged = part.having(("x-amz-copy-source", source), ("x-amz-copy-source-range", "bytes=0-3"))
        assert site.ask(site.sign(ranged)).code in ("AccessDenied", "InvalidArgument")


def test_f62_copy_into_anothers_bucket(site: Site) -> None:
    source = f"/{GROUND}/keep/small"
    part = Request("PUT", path_of(OTHERS, "secret"), f"partNumber=2&uploadId={site.others_upload}")
    for request in (
        copy(OTHERS, "evil", source),
        copy(OTHERS, "secret", source),
        part.having(("x-amz-copy-source", source)),
    ):
        site.refused(site.sign(request), 403, "AccessDenied")


def test_f62_copying_within_anothers_bucket(site: Site) -> None:
    site.refused(site.sign(copy(OTHERS, "evil", f"/{OTHERS}/secret")), 403, "AccessDenied")


def test_f62_conditions_do_not_tell_of_anothers_object(site: Site) -> None:
    """Neither a condition on the source nor its absence may show whether a key is there."""
    answers = set()
    for key in ("secret", "none"):
        for name, value in (
            ("x-amz-copy-source-if-match", '"x"'),
            ("x-amz-copy-source-if-none-match", "*"),
            ("x-amz-copy-source-if-modified-since", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ):
            request = copy(GROUND, "evil", f"/{OTHERS}/{key}").having((name, value))
            answer = site.refused(site.sign(request), 403, "AccessDenied")
            answers.add((answer.code, answer.all("Message")[0], tuple(answer.all("Key"))))
    assert len(answers) == 1


def test_f62_expected_owners(site: Site) -> None:
    for value in ("other-id", "", "x", "TESTACCESSKEY"):
        for name in ("x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"):
            request = copy(GROUND, "evil", f"/{GROUND}/keep/small").having((name, value))
            site.refused(site.sign(request), 403, "AccessDenied")
        for attack in site.attacks():
            site.refused(site.sign(attack.having(("x-amz-expected-bucket-owner", value))), 403, "AccessDenied")


def test_f68_nobody_may_anything(site: Site) -> None:
    for attack in [*site.attacks(), *site.attacks(OTHERS), Request("GET", "/"), Request("PUT", "/evil-bucket")]:
        site.refused(attack, 403, "AccessDenied")
    for query in ("acl", "policy", "versions", "location", "uploads", "versioning", "tagging", "list-type=2"):
        site.refused(Request("GET", path_of(GROUND), query), 403, "AccessDenied")
    for query in ("acl", "attributes", "tagging", "versionId=null", "torrent"):
        answer = site.ask(Request("GET", path_of(GROUND, "keep/small"), query))
        assert (answer.status, answer.code) in [(403, "AccessDenied"), (501, "NotImplemented")]


FIELDS = {
    "userid": "other-id",
    "username": "root",
    "principaltype": "Account",
    "SourceIp": "127.0.0.1",
    "aws": "SourceIp: 127.0.0.1",
    "X-Forwarded-For": "127.0.0.1",
    "X-Real-IP": "127.0.0.1",
    "Forwarded": "for=127.0.0.1;host=others.s3.test",
    "X-Forwarded-Host": "others.s3.test",
    "X-Forwarded-User": "root",
    "X-Original-URL": "/ground/keep/small",
    "X-Rewrite-URL": "/ground/keep/small",
    "X-Remote-User": "root",
    "Cookie": "session=root",
    "Referer": "http://localhost/",
    "Proxy-Authorization": "Basic cm9vdDpyb290",
    "x-minio-source-replication-request": "true",
}


@pytest.mark.parametrize("name", **cases(FIELDS))
def test_f69_fields_that_look_like_conditions(site: Site, name: str) -> None:
    field = (name, FIELDS[name])
    for attack in site.attacks():
        site.refused(attack.having(field), 403, "AccessDenied")
        site.refused(site.sign(attack, site.other).having(field), 403, "AccessDenied")
    for attack in site.attacks(OTHERS):
        site.refused(site.sign(attack).having(field), 403, "AccessDenied")
    # and who may, still may
    read = site.sign(Request("GET", path_of(GROUND, "keep/small"))).having(field)
    assert site.ask(read).body == SMALL


def uploads_requests(bucket: str, key: str, upload: str) -> list[Request]:
    """Every operation on an upload."""
    path = path_of(bucket, key)
    source = ("x-amz-copy-source", f"/{bucket}/keep/small")
    return [
        Request("PUT", path, f"partNumber=2&uploadId={upload}", body=b"evil"),
        Request("PUT", path, f"partNumber=2&uploadId={upload}", (source,)),
        Request("POST", path, f"uploadId={upload}", body=COMPLETE),
        Request("GET", path, f"uploadId={upload}"),
        Request("DELETE", path, f"uploadId={upload}"),
    ]


def test_f73_anothers_upload_in_anothers_bucket(site: Site) -> None:
    for request in uploads_requests(OTHERS, "secret", site.others_upload):
        site.refused(site.sign(request), 403, "AccessDenied")
        site.refused(request, 403, "AccessDenied")


def test_f73_anothers_upload_under_ones_own_bucket(site: Site) -> None:
    for key in ("secret", "keep/upload", "evil"):
        for request in uploads_requests(GROUND, key, site.others_upload):
            site.refused(site.sign(request), 404, "NoSuchUpload")


def test_f73_upload_of_another_key_or_bucket_of_ones_own(site: Site) -> None:
    bucket = site.fresh()
    site.ok(put(bucket, "keep/small"))
    for request in (
        *uploads_requests(GROUND, "evil", site.upload),
        *uploads_requests(GROUND, "keep/small", site.upload),
        *uploads_requests(GROUND, "keep/upload/", site.upload),
        *uploads_requests(bucket, "keep/upload", site.upload),
    ):
        site.refused(site.sign(request), 404, "NoSuchUpload")
    assert site.keys(bucket) == ["keep/small"]


def test_f73_complete_after_the_right_was_taken_away(site: Site) -> None:
    key = Key("UPLOADERKEY", "uploader-secret-0123")
    site.gateway.run("user", "add", "--access-key", key.access, "--secret-key", key.secret, "--id", "uploader-id")
    site.fresh_buckets += 1
    bucket = f"fresh-uploader-{site.fresh_buckets}"
    site.ok(Request("PUT", path_of(bucket)), key)
    upload = site.begin(bucket, "k", key, parts=(b"part one",))
    site.gateway.run("user", "disable", "uploader-id")
    for request in uploads_requests(bucket, "k", upload):
        site.refused(site.sign(request, key), 403, "InvalidAccessKeyId")
    site.gateway.run("user", "enable", "uploader-id")
    parts = site.ok(Request("GET", path_of(bucket, "k"), f"uploadId={upload}"), key)
    assert parts.all("PartNumber") == ["1"]
    assert site.keys(bucket, key) == []


def test_f73_ended_uploads(site: Site) -> None:
    bucket = site.fresh()
    site.ok(put(bucket, "keep/small"))
    aborted = site.begin(bucket, "k", parts=(b"part one",))
    site.ok(Request("DELETE", path_of(bucket, "k"), f"uploadId={aborted}"), status=204)
    for request in uploads_requests(bucket, "k", aborted):
        site.refused(site.sign(request), 404, "NoSuchUpload")
    done = site.begin(bucket, "k", parts=(b"part one",))
    site.ok(Request("POST", path_of(bucket, "k"), f"uploadId={done}", body=COMPLETE))
    for request in uploads_requests(bucket, "k", done):
        if request.method != "POST":
            site.refused(site.sign(request), 404, "NoSuchUpload")
    assert site.get(bucket, "k") == b"part one"


def test_f74_delete_objects_in_anothers_bucket(site: Site) -> None:
    site.refused(site.sign(delete_many(OTHERS, "secret")), 403, "AccessDenied")
    site.refused(delete_many(OTHERS, "secret"), 403, "AccessDenied")
    for name in (f"../{OTHERS}/secret", f"/{OTHERS}/secret", f"{OTHERS}/secret"):
        site.ok(delete_many(GROUND, name))
    assert site.get(OTHERS, "secret", site.other) == SECRET_BODY


def test_f74_every_entry_has_an_answer_of_its_own(site: Site) -> None:
    bucket = site.fresh()
    for key in ("a", "b", "c"):
        site.ok(put(bucket, key))
    entries = [
        "<Object><Key>a</Key></Object>",
        "<Object><Key>../a</Key></Object>",
        '<Object><Key>b</Key><ETag>"0123"</ETag></Object>',
        "<Object><Key>none</Key></Object>",
        f"<Object><Key>{'x' * 1025}</Key></Object>",
        "<Object><Key>c</Key><VersionId>no-version</VersionId></Object>",
        "<Object><Key>c</Key><Size>999</Size></Object>",
    ]
    body = xml("Delete", "".join(entries))
    answer = site.ok(Request("POST", path_of(bucket), "delete", (content_md5(body),), body))
    deleted = [element.findtext("Key") for element in answer.tree().iter("Deleted")]
    errors = [(element.findtext("Key"), element.findtext("Code")) for element in answer.tree().iter("Error")]
    assert [key for key in deleted if key in ("a", "b")] == ["a"]
    assert ("../a", "InvalidURI") in errors
    assert ("b", "PreconditionFailed") in errors
    assert ("x" * 1025, "KeyTooLongError") in errors
    assert ("c", "PreconditionFailed") in errors
    assert len(deleted) + len(errors) == len(entries)
    assert site.keys(bucket) == ["b", "c"]


def test_f74_quiet_hides_no_error(site: Site) -> None:
    body = xml("Delete", '<Quiet>true</Quiet><Object><Key>keep/small</Key><ETag>"0"</ETag></Object>')
    answer = site.ok(Request("POST", path_of(GROUND), "delete", (content_md5(body),), body))
    assert answer.all("Code") == ["PreconditionFailed"]
    assert answer.all("Deleted") == []


def test_f74_of_another_bucket_by_the_path_signed_for_ones_own(site: Site) -> None:
    request = site.sign(delete_many(GROUND, "secret"))
    site.refused(replace(request, path=path_of(OTHERS)), 403, "SignatureDoesNotMatch")
