"""Point s3fs's own tests, which start a mock of S3, at the gateway of `SLUICE_ENDPOINT` (a pytest plugin)."""

from __future__ import annotations

import os
import sys
from typing import Any

import botocore.session
import moto.moto_server.threaded_moto_server as mock
import requests

ENDPOINT = os.environ["SLUICE_ENDPOINT"]
s3 = botocore.session.Session().create_client("s3", endpoint_url=ENDPOINT)


def remove_buckets() -> None:
    """Remove all buckets with all they hold."""
    for bucket in s3.list_buckets()["Buckets"]:
        name = bucket["Name"]
        for upload in s3.list_multipart_uploads(Bucket=name).get("Uploads", []):
            s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload["UploadId"])
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=name):
            found = page.get("Versions", []) + page.get("DeleteMarkers", [])
            objects = [{"Key": one["Key"], "VersionId": one["VersionId"]} for one in found]
            if objects:
                s3.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
        s3.delete_bucket(Bucket=name)


class Server:
    """Stands for the mock's server: a new one has no buckets."""

    def __init__(self, **_: Any) -> None:
        """Take what the mock's takes."""

    def start(self) -> None:
        """Begin with no buckets."""
        remove_buckets()

    def stop(self) -> None:
        """Leave the gateway as it is."""


def post(url: str) -> None:
    """Do what the mock does with a request to its own API: the tests send it no other than this."""
    assert url.endswith("/moto-api/reset"), url
    remove_buckets()


def pytest_collection_modifyitems() -> None:
    """Give the tests, once they are imported, the address of the gateway."""
    for name, module in list(sys.modules.items()):
        if name.startswith("s3fs.tests") and hasattr(module, "endpoint_uri"):
            module.endpoint_uri = ENDPOINT + "/"


mock.ThreadedMotoServer = Server
requests.post = post
