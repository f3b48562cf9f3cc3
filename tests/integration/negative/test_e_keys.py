"""Group E: keys, and names that look like something else."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import replace
from urllib.parse import unquote

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import CLIMBING, GROUND, Site, path_of, put
from tests.support.raw_http import Request

ODD = [
    *(".", "./x", "a/./b", "a/..", "a/../b", "a/b/../../c", "...", "..a", "a..", "a/...", "~", "~root"),
    *("/x", "//", "/", "a//b", "a/", "a//", "///a///", " ", " a ", "a b", "+", "a+b", "%", "%2F", "%2e%2e%2f", "100%"),
    *(
        "?",
        "a?acl",
        "a?versionId=null",
        "#",
        "a#b",
        "&",
        "=",
        ";",
        ":",
        "@",
        "C:\\x",
        "\\..\\x",
        "|",
        "*",
        "'",
        '"',
        "<>",
    ),
    *("\\", "`id`", "$(id)", "'; DROP TABLE versions; --", "%_", "[a-z]", "\ufeff", "\u202ereversed", "\U0001f4a9"),
]


def round_trip(site: Site, keys: list[str]) -> None:
    """Every key is stored, read, listed and deleted as itself and nothing else."""
    bucket = site.fresh()
    for number, key in enumerate(keys):
        site.ok(put(bucket, key, b"body %d" % number))
    for number, key in enumerate(keys):
        assert site.get(bucket, key) == b"body %d" % number, key
        assert site.ok(Request("HEAD", path_of(bucket, key))).headers["content-length"] == str(len(b"body %d" % number))
    assert site.keys(bucket) == sorted(keys, key=str.encode)
    for key in keys[::2]:
        site.ok(Request("DELETE", path_of(bucket, key)), status=204)
    assert site.keys(bucket) == sorted(keys[1::2], key=str.encode)


@pytest.mark.parametrize("key", **cases(CLIMBING))
def test_e51_key_that_climbs_out(site: Site, key: str) -> None:
    path = path_of(GROUND, key)
    for request in (
        put(GROUND, key),
        Request("GET", path),
        Request("HEAD", path),
        Request("DELETE", path),
        Request("POST", path, "uploads"),
        put(GROUND, key, b"", x_amz_copy_source=f"/{GROUND}/keep/small"),
    ):
        site.refused(site.sign(request), 400, "InvalidURI")


def test_e51_odd_keys_are_keys(site: Site) -> None:
    round_trip(site, ODD)


ESCAPES = {
    "broken": "%",
    "broken at the end": "a%2",
    "no hex": "%zz",
    "overlong slash": "%C0%AF",
    "overlong dots": "%C0%AE%C0%AE/x",
    "overlong in three": "%E0%80%AF",
    "lone surrogate": "%ED%A0%80",
    "pair of surrogates": "%ED%A0%BD%ED%B2%A9",
    "over U+10FFFF": "%F4%90%80%80",
    "not UTF-8": "%FF%FE",
    "cut short": "%C3",
    "latin-1": "caf%E9",
}


@pytest.mark.parametrize("name", **cases(ESCAPES))
def test_e52_key_that_is_no_text(site: Site, name: str) -> None:
    path = f"/{GROUND}/{ESCAPES[name]}"
    for method in ("PUT", "GET", "DELETE"):
        site.refused(site.sign(Request(method, path)), 400, "InvalidURI")
        site.refused(site.sign(Request(method, f"/{ESCAPES[name]}/key")), 400, "InvalidURI", "InvalidBucketName")
        site.refused(site.sign(Request("GET", f"/{GROUND}", f"prefix={ESCAPES[name]}")), 400, "InvalidURI")


@pytest.mark.parametrize("path", ["%2e%2e%2fsecret", "a/%2e%2e/%2E%2E/b", "%2e./x", "..%2F..%2Fetc%2Fpasswd", "%2e%2e"])
def test_e52_escaped_dots_are_dots(site: Site, path: str) -> None:
    """The signature covers the one canonical form of the path, whatever form is sent."""
    canonical = site.sign(Request("PUT", path_of(GROUND, unquote(path)), body=b"evil"))
    site.refused(canonical, 400, "InvalidURI")
    site.refused(replace(canonical, path=f"/{GROUND}/{path}"), 400, "InvalidURI")


def test_e52_double_escapes_are_decoded_once(site: Site) -> None:
    round_trip(site, ["%2e%2e%2fx", "%252e", "%00", "%25", "a%2Fb", "%C3%BC"])


def test_e52_controls_are_keys(site: Site) -> None:
    round_trip(site, [f"a{chr(number)}b" for number in (*range(32), 127, 0x80, 0x9F, 0xFFFE, 0xFFFF)] + ["\0", "\r\n"])


def test_e52_a_key_with_a_line_end_makes_no_header(site: Site) -> None:
    bucket = site.fresh()
    key = "a\r\nX-Evil: 1\r\n\r\n<html>"
    upload = site.begin(bucket, key)
    for request in (
        put(bucket, key),
        Request("GET", path_of(bucket, key)),
        Request("GET", path_of(bucket, key), f"uploadId={upload}"),
        Request("GET", path_of(bucket, key), "attributes", (("x-amz-object-attributes", "ETag"),)),
        Request("DELETE", path_of(bucket, key)),
    ):
        answer = site.ask(site.sign(request))
        assert answer.status < 300
        assert "x-evil" not in answer.headers
    assert site.refused(site.sign(Request("GET", path_of(bucket, key))), 404, "NoSuchKey").all("Key") == [key]


def test_e53_forms_and_cases_are_distinct(site: Site) -> None:
    composed = "Ä\u1e69"
    keys = [unicodedata.normalize(form, composed) for form in ("NFC", "NFD")]
    round_trip(
        site, [*keys, "key", "KEY", "Key", "kEy", "ß", "SS", "ss", "\u0131", "i", "I", "İ", "ﬁ", "fi", "K", "\u212a"]
    )


def test_e54_length_of_a_key(site: Site) -> None:
    segments = "/".join(["s" * 255] * 4)
    fitting = ["a" * 1024, "ü" * 512, "€" * 341 + "a", "\U0001f4a9" * 256, segments + "!", "/" * 1024]
    round_trip(site, fitting)
    for key in ["a" * 1025, "ü" * 513, "€" * 342, "\U0001f4a9" * 257, "a/" * 513, "a" * 4000]:
        for request in (
            put(GROUND, key),
            Request("GET", path_of(GROUND, key)),
            Request("DELETE", path_of(GROUND, key)),
            Request("POST", path_of(GROUND, key), "uploads"),
        ):
            site.refused(site.sign(request), 400, "KeyTooLongError")


def test_e55_a_key_and_keys_under_it(site: Site) -> None:
    round_trip(site, ["a", "a/b", "a/", "a/b/c", "a//", "a/b/"])


INTERNAL = ["data", "index", "index/sluice.db", "run/jobs.lock", ".tmp", ".sys", "credentials", "identity", "store"]
INTERNAL += ["master-key"]


def test_e56_internal_names_are_ordinary_keys(site: Site) -> None:
    inside = sorted(path.name for path in site.data.iterdir())
    files = [str(path.relative_to(site.data)) for path in site.data.rglob("*") if path.is_file()][:40]
    before = {name: os.stat(site.data / name).st_ino for name in files if not name.startswith(("data/", "index/run"))}
    round_trip(site, list(dict.fromkeys([*INTERNAL, *inside, *files, "-/health/live"])))
    for name, inode in before.items():
        assert os.stat(site.data / name).st_ino == inode
    assert sorted(path.name for path in site.data.iterdir()) == inside


@pytest.mark.parametrize("name", [".tmp", ".sys", ".minio.sys", "-", "_", "~", "sluice.db-wal/..", ".."])
def test_e56_internal_names_are_no_buckets(site: Site, name: str) -> None:
    site.refused(site.sign(Request("PUT", f"/{name}")), 400, "InvalidBucketName", "InvalidURI")


def test_e56_files_of_the_store_cannot_be_reached(site: Site) -> None:
    blob = next((site.data / "data").glob("*/*")).relative_to(site.data)
    for path in ("/index/sluice.db", f"/{blob}", "/data/identity", "//index/sluice.db", "/./index/sluice.db"):
        answer = site.ask(site.sign(Request("GET", path)))
        assert answer.status in (400, 404), (path, answer)


def test_e56_a_bucket_named_minio_takes_its_path_back(site: Site) -> None:
    live = Request("GET", "/minio/health/live")
    assert site.ask(live).status == 200
    site.refused(site.sign(live), 404, "NoSuchBucket")
    site.ok(Request("PUT", "/minio"))
    try:
        site.ok(put("minio", "health/live", b"an object"))
        for _ in range(8):  # both workers
            site.refused(live, 403, "AccessDenied")
            assert site.get("minio", "health/live") == b"an object"
        site.ok(Request("DELETE", "/minio/health/live"), status=204)
    finally:
        site.ask(site.sign(Request("DELETE", "/minio/health/live")))
        site.ok(Request("DELETE", "/minio"), status=204)
        site.fresh_buckets += 1
