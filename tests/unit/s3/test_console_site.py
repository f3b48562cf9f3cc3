"""Which pages the console has, what they may read of S3, and which browsers are led to them."""

from __future__ import annotations

import pytest

from sluice_s3.app.s3.cors.console import ConsoleSite
from sluice_s3.app.s3.errors import BadRequest
from sluice_s3.app.s3.wire.request import S3Request

ANYWHERE = ConsoleSite("", "http://0.0.0.0:9001")


def request(method: str = "GET", host: str = "nas.test:9000", client: str = "10.0.0.9", **headers: str) -> S3Request:
    made = S3Request()
    given = {"host": host} | {name.replace("_", "-"): value for name, value in headers.items()}
    made.set_headers([name.encode() for name in given], [value.encode() for value in given.values()])
    made.method, made.raw_path, made.raw_query, made.client = method, b"/", b"", client
    return made


def test_the_origin_beside_s3() -> None:
    assert ANYWHERE.is_origin(request(origin="http://nas.test:9001"))
    assert ANYWHERE.is_origin(request(host="NAS.test", origin="http://nas.test:9001"))
    assert ANYWHERE.is_origin(request(host="[::1]:9000", origin="http://[::1]:9001"))
    assert ConsoleSite("", "https://0.0.0.0:443").is_origin(request(origin="https://nas.test"))


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://nas.test:9000",
        "https://nas.test:9001",
        "http://evil.test:9001",
        "http://nas.test:9001/",
        "*",
    ],
)
def test_other_origins(origin: str) -> None:
    assert not ANYWHERE.is_origin(request(origin=origin))


@pytest.mark.parametrize("host", ["", "a b", "[", "x:y:z", "h" * 300, "nas.test@evil.test"])
def test_a_host_that_is_none(host: str) -> None:
    assert not ANYWHERE.is_origin(request(host=host, origin=f"http://{host}:9001"))
    assert not ANYWHERE.is_origin(request(host=host, origin=""))
    assert ANYWHERE.redirect(request(host=host, accept="text/html")) is None


def test_no_origin_and_websites() -> None:
    assert not ANYWHERE.is_origin(request())
    site = request(origin="http://nas.test:9001")
    site.website = True
    assert not ANYWHERE.is_origin(site)


def test_the_url_of_the_settings() -> None:
    named = ConsoleSite("https://console.test", "http://127.0.0.1:9001")
    assert named.is_origin(request(origin="https://console.test"))
    found = named.redirect(request(accept="text/html"))
    assert found is not None
    assert dict(found.headers)[b"location"] == b"https://console.test/console/"


def test_a_preflight_request() -> None:
    asked = request(
        "OPTIONS",
        origin="http://nas.test:9001",
        access_control_request_method="DELETE",
        access_control_request_headers="x-amz-meta-a, range",
    )
    headers = dict(ANYWHERE.preflight(asked).headers)
    assert headers[b"access-control-allow-origin"] == b"http://nas.test:9001"
    assert headers[b"access-control-allow-headers"] == b"x-amz-meta-a, range"
    assert b"DELETE" in headers[b"access-control-allow-methods"]
    assert b"access-control-allow-credentials" not in headers
    with pytest.raises(BadRequest):
        ANYWHERE.preflight(request("OPTIONS", origin="http://nas.test:9001"))


def test_browsers_are_led_to_the_console() -> None:
    found = ANYWHERE.redirect(request(accept="text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"))
    assert found is not None
    assert (found.status, dict(found.headers)[b"location"]) == (302, b"http://nas.test:9001/console/")
    assert ANYWHERE.redirect(request(accept="*/*")) is None
    assert ANYWHERE.redirect(request("HEAD", accept="text/html")) is None
    of_bucket = request(accept="text/html")
    of_bucket.bucket = "pail"
    assert ANYWHERE.redirect(of_bucket) is None
    with_query = request(accept="text/html")
    with_query.raw_query = b"x-id=ListBuckets"
    assert ANYWHERE.redirect(with_query) is None


def test_only_those_who_can_reach_it() -> None:
    here = ConsoleSite("", "http://127.0.0.1:9001")
    assert here.redirect(request(accept="text/html")) is None
    assert here.redirect(request(host="localhost:9000", accept="text/html")) is None
    assert here.redirect(request(client="127.0.0.1", accept="text/html")) is None, "a proxy on this machine"
    assert here.redirect(request(host="localhost:9000", client="127.0.0.1", accept="text/html")) is not None
