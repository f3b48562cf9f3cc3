"""The oracle's oracle: what the tests sign is what botocore signs."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.raw_http import Request
from tests.support.signing import Key, Way, presign, sign_full

KEY = Key("AKID", "secret")
PATHS = ["/", "/b", "/b/k", "/b//k/", "/b/%C3%BC%20%2B%25", "/b/a/../k"]
QUERIES = ["", "acl=", "uploads=", "list-type=2&prefix=a%2Fb", "b=2&a=1&a=0"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("query", QUERIES)
def test_header_signatures_are_botocores(path: str, query: str) -> None:
    signed = sign_full(Request("PUT", path, query, (("x-amz-meta-a", "x  y"),), b"body"), KEY, Way("host:1"))
    url = f"http://host:1{path}{'?' + query if query else ''}"
    theirs = AWSRequest("PUT", url, {"x-amz-meta-a": "x  y"}, b"body")
    theirs.headers["X-Amz-Content-SHA256"] = signed.request.header("x-amz-content-sha256")
    auth = S3SigV4Auth(Credentials(*KEY), "s3", "us-east-1")
    theirs.context.update(timestamp=signed.timestamp, payload_signing_enabled=True)
    theirs.headers["X-Amz-Date"] = signed.timestamp
    assert auth.signature(auth.string_to_sign(theirs, auth.canonical_request(theirs)), theirs) == signed.signature


def test_presigned_urls_are_botocores() -> None:
    ours = presign(Request("GET", "/b/k", "response-expires=x"), KEY, Way("host:1"), expires="60")
    theirs = AWSRequest("GET", "http://host:1/b/k?response-expires=x")
    S3SigV4QueryAuth(Credentials(*KEY), "s3", "us-east-1", expires=60).add_auth(theirs)
    mine = dict(field.split("=") for field in ours.query.split("&"))
    botocores = dict(field.split("=") for field in urlsplit(theirs.url).query.split("&"))
    if mine["X-Amz-Date"] == botocores["X-Amz-Date"]:
        assert mine == botocores
    else:  # the second has turned between the two
        assert mine.keys() == botocores.keys()
