"""Buckets as websites."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.gateway import Gateway, client
from tests.support.places import kinds_for, placed
from tests.support.waiting import eventually

DOMAIN = "website.test"
_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=kinds_for(None))
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("website")
    env = {"SLUICE_WEBSITE_DOMAIN": DOMAIN, "SLUICE_DOMAIN": "test"}
    with placed(directory, request.param) as place, Gateway(directory / "data", place=place, env=env) as running:
        yield running


@pytest.fixture
def s3(gateway: Gateway) -> Any:
    return client(gateway.endpoint)


@pytest.fixture
def site(s3: Any) -> str:
    """A bucket that everybody may read."""
    name = f"site-{next(_numbers)}"
    s3.create_bucket(Bucket=name)
    open_to_all(s3, name)
    return name


def open_to_all(s3: Any, name: str) -> None:
    s3.delete_public_access_block(Bucket=name)
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{name}/*"}
    s3.put_bucket_policy(Bucket=name, Policy=json.dumps({"Version": "2012-10-17", "Statement": statement}))


def configure(s3: Any, site: str, **more: Any) -> None:
    found = {"IndexDocument": {"Suffix": "index.html"}, **more}
    s3.put_bucket_website(Bucket=site, WebsiteConfiguration=found)


def ask(gateway: Gateway, site: str, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    host = {"host": f"{site}.{DOMAIN}"}
    return httpx.request(method, gateway.endpoint + path, headers=host | headers, follow_redirects=False)


def put(s3: Any, site: str, **objects: bytes) -> None:
    for name, body in objects.items():
        s3.put_object(Bucket=site, Key=name.replace("_", "/"), Body=body, ContentType="text/html")


def test_index_and_error_documents(gateway: Gateway, s3: Any, site: str) -> None:
    configure(s3, site, ErrorDocument={"Key": "error"})
    for name in ("index.html", "sub/index.html", "plain", "error"):
        s3.put_object(Bucket=site, Key=name, Body=name.encode(), ContentType="text/html")
    for path, body in (("/", "index.html"), ("/sub/", "sub/index.html"), ("/plain", "plain")):
        answer = ask(gateway, site, path)
        assert (answer.status_code, answer.text, answer.headers["content-type"]) == (200, body, "text/html")
        head = ask(gateway, site, path, "HEAD")
        assert (head.status_code, head.text, head.headers["content-length"]) == (200, "", str(len(body)))
    assert ask(gateway, site, "/plain?acl&versionId=x").text == "plain"
    assert ask(gateway, site, "/plain", range="bytes=0-1").text == "pl"
    etag = ask(gateway, site, "/plain").headers["etag"]
    assert ask(gateway, site, "/plain", **{"if-none-match": etag}).status_code == 304
    beneath = ask(gateway, site, "/sub")
    assert (beneath.status_code, beneath.headers["location"]) == (302, "/sub/")
    missing = ask(gateway, site, "/missing", range="bytes=0-1")
    assert (missing.status_code, missing.text) == (403, "error")  # who may not list may not know
    assert missing.headers["x-amz-error-code"] == "AccessDenied"
    s3.delete_object(Bucket=site, Key="error")
    page = ask(gateway, site, "/missing")
    assert page.status_code == 403
    assert "<title>403 Forbidden</title>" in page.text
    assert "<li>Code: AccessDenied</li>" in page.text
    assert "An Error Occurred While Attempting to Retrieve a Custom Error Document" in page.text


def test_missing_where_all_may_list(gateway: Gateway, s3: Any, site: str) -> None:
    configure(s3, site)
    statement = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject", "s3:ListBucket"],
        "Resource": [f"arn:aws:s3:::{site}/*", f"arn:aws:s3:::{site}"],
    }
    s3.put_bucket_policy(Bucket=site, Policy=json.dumps({"Version": "2012-10-17", "Statement": statement}))
    page = ask(gateway, site, "/<b>missing")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<li>Code: NoSuchKey</li>" in page.text
    assert "<li>Key: &lt;b&gt;missing</li>" in page.text
    assert ask(gateway, site, "/missing", "HEAD").text == ""


def test_what_is_no_website(gateway: Gateway, s3: Any, site: str) -> None:
    assert "NoSuchWebsiteConfiguration" in ask(gateway, site, "/").text
    assert "NoSuchBucket" in ask(gateway, "there-is-none", "/").text
    configure(s3, site)
    for method in ("PUT", "POST", "DELETE"):
        refused = ask(gateway, site, "/k", method)
        assert (refused.status_code, refused.headers["x-amz-error-code"]) == (405, "MethodNotAllowed")
    s3.put_object(Bucket=site, Key="index.html", Body=b"x")
    s3.delete_bucket_policy(Bucket=site)
    assert ask(gateway, site, "/").status_code == 403
    s3.delete_bucket_website(Bucket=site)
    assert ask(gateway, site, "/").status_code == 404
    with pytest.raises(ClientError, match="NoSuchWebsiteConfiguration"):
        s3.get_bucket_website(Bucket=site)


def test_redirects(gateway: Gateway, s3: Any, site: str) -> None:
    everything = {"RedirectAllRequestsTo": {"HostName": "other.example", "Protocol": "https"}}
    s3.put_bucket_website(Bucket=site, WebsiteConfiguration=everything)
    found = s3.get_bucket_website(Bucket=site)
    assert found["RedirectAllRequestsTo"] == everything["RedirectAllRequestsTo"]
    answer = ask(gateway, site, "/a%20b")
    assert (answer.status_code, answer.headers["location"]) == (301, "https://other.example/a%20b")
    rules = [
        {
            "Condition": {"KeyPrefixEquals": "docs/"},
            "Redirect": {"ReplaceKeyPrefixWith": "documents/", "HttpRedirectCode": "302"},
        },
        {"Condition": {"KeyPrefixEquals": "one/"}, "Redirect": {"ReplaceKeyWith": "all", "HostName": "h.example"}},
        {
            "Condition": {"HttpErrorCodeReturnedEquals": "403", "KeyPrefixEquals": "x"},
            "Redirect": {"ReplaceKeyPrefixWith": "y", "Protocol": "https"},
        },
    ]
    configure(s3, site, RoutingRules=rules)
    assert s3.get_bucket_website(Bucket=site)["RoutingRules"] == rules
    here = f"{site}.{DOMAIN}"
    for path, status, location in (
        ("/docs/a", 302, f"http://{here}/documents/a"),
        ("/one/a", 301, "http://h.example/all"),
        ("/xa", 301, f"https://{here}/ya"),
    ):
        answer = ask(gateway, site, path)
        assert (answer.status_code, answer.headers["location"]) == (status, location)
    s3.put_object(Bucket=site, Key="moved", Body=b"x", WebsiteRedirectLocation="/elsewhere")
    assert s3.get_object(Bucket=site, Key="moved")["WebsiteRedirectLocation"] == "/elsewhere"
    for method in ("GET", "HEAD"):
        answer = ask(gateway, site, "/moved", method)
        assert (answer.status_code, answer.headers["location"]) == (301, "/elsewhere")


INDEX = {"IndexDocument": {"Suffix": "i"}}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({}, "InvalidArgument"),
        ({"IndexDocument": {"Suffix": ""}}, "InvalidArgument"),
        ({"IndexDocument": {"Suffix": "a/b"}}, "InvalidArgument"),
        ({**INDEX, "RedirectAllRequestsTo": {"HostName": "h"}}, "InvalidArgument"),
        ({"RedirectAllRequestsTo": {"HostName": ""}}, "InvalidRequest"),
        ({"RedirectAllRequestsTo": {"HostName": "h", "Protocol": "ftp"}}, "InvalidRequest"),
        ({**INDEX, "RoutingRules": []}, "MalformedXML"),
        ({**INDEX, "RoutingRules": [{"Condition": {}, "Redirect": {"HostName": "h"}}]}, "InvalidRequest"),
        ({**INDEX, "RoutingRules": [{"Redirect": {}}]}, "MalformedXML"),
        ({**INDEX, "RoutingRules": [{"Redirect": {"HttpRedirectCode": "300"}}]}, "InvalidRequest"),
        (
            {
                **INDEX,
                "RoutingRules": [
                    {"Condition": {"HttpErrorCodeReturnedEquals": "200"}, "Redirect": {"HostName": "h"}},
                ],
            },
            "InvalidRequest",
        ),
        (
            {**INDEX, "RoutingRules": [{"Redirect": {"ReplaceKeyWith": "a", "ReplaceKeyPrefixWith": "b"}}]},
            "InvalidRequest",
        ),
    ],
)
def test_wrong_documents(s3: Any, site: str, document: dict[str, Any], code: str) -> None:
    with pytest.raises(ClientError) as error:
        s3.put_bucket_website(Bucket=site, WebsiteConfiguration=document)
    assert error.value.response["Error"]["Code"] == code


def test_a_port_of_its_own(tmp_path: Path) -> None:
    env = {"SLUICE_WEBSITE_DOMAIN": DOMAIN, "SLUICE_WEBSITE_PORT": "0"}
    with Gateway(tmp_path / "data", env=env) as gateway:
        assert gateway.process is not None
        assert gateway.process.stdout is not None
        said, _, address = gateway.process.stdout.readline().strip().rpartition(" ")
        assert said == "sluice: websites on"
        s3, name = client(gateway.endpoint), "www.example.com"
        for bucket in (name, "plain"):
            s3.create_bucket(Bucket=bucket)
        open_to_all(s3, name)
        configure(s3, name)
        put(s3, name, private=b"page")
        s3.put_object(Bucket=name, Key="index.html", Body=b"home")
        s3.put_object(Bucket="plain", Key="k", Body=b"x")

        def get(path: str, host: str, method: str = "GET", **more: Any) -> httpx.Response:
            return httpx.request(method, address + path, headers={"host": host}, **more)

        for host in (name, f"{name}:8080", name.upper(), f"{name}.{DOMAIN}"):
            assert (get("/", host).status_code, get("/", host).text) == (200, "home")
            assert get("/private?list-type=2", host).text == "page"
        assert get("/-/health/live", name).status_code == 403, "there is no such object, and nobody may list"
        for path in ("/-/health/ready", "/minio/health/live", "/minio/health/cluster"):
            assert httpx.get(gateway.endpoint + path, headers={"host": f"{name}.{DOMAIN}"}).status_code == 403
        assert get("/private", name, "PUT", content=b"x").status_code == 405
        assert "NoSuchWebsiteConfiguration" in get("/k", "plain").text
        for host in ("127.0.0.1", "nobody.example.com", f"nobody.{DOMAIN}", "localhost"):
            assert "NoSuchBucket" in get("/plain/k", host).text
        with pytest.raises(ClientError) as error:
            client(address).list_buckets()
        assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
        ordinary = httpx.get(gateway.endpoint + "/", headers={"host": name})
        assert ordinary.status_code == 403, "on the other port it is the service"
        before = gateway.children()
        gateway.hup()
        eventually(lambda: not set(before) & set(gateway.children()), "all workers were replaced")
        assert get("/", name).text == "home"
