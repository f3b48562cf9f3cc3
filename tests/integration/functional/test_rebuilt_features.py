"""What buckets were configured to do is there again after `sluice rebuild`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.functional import test_inventory, test_logging, test_notifications
from tests.support.gateway import Gateway, client
from tests.support.hook import Hook
from tests.support.places import placed

RULE = {"RoutingRules": [{"Condition": {"KeyPrefixEquals": "a/"}, "Redirect": {"ReplaceKeyPrefixWith": "b/"}}]}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    hook = Hook()
    env = {"SLUICE_NOTIFY_TARGETS": json.dumps({"hook": {"url": hook.url}}), "SLUICE_LOG_INTERVAL": "1"}
    with placed(tmp_path, "here") as place, Gateway(tmp_path / "data", place=place, env=env) as running:
        yield running
    hook.close()


def told(s3: Any) -> list[Any]:
    found = [
        s3.get_bucket_logging(Bucket="source")["LoggingEnabled"],
        s3.get_bucket_website(Bucket="source"),
        s3.get_bucket_notification_configuration(Bucket="source"),
        s3.get_bucket_inventory_configuration(Bucket="source", Id="list"),
    ]
    return [{name: value for name, value in one.items() if name != "ResponseMetadata"} for one in found]


def test_settings_survive(gateway: Gateway) -> None:
    s3 = client(gateway.endpoint)
    for name in ("source", "target", "reports"):
        s3.create_bucket(Bucket=name)
    test_logging.let(s3, "source", "target")
    test_logging.enable(s3, "source", "target", "p/")
    s3.put_bucket_website(Bucket="source", WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}, **RULE})
    test_notifications.tell(s3, "source", prefix="in/")
    test_inventory.configure(s3, "source", test_inventory.described("reports", IsEnabled=False))
    before = told(s3)
    gateway.stop()
    shutil.rmtree(gateway.data / "index")
    gateway.run("rebuild")
    gateway.start()
    s3 = client(gateway.endpoint)
    assert told(s3) == before
    s3.put_object(Bucket="source", Key="k", Body=b"x")
    test_logging.logged(s3, "target", test_logging.have("REST.PUT.OBJECT"))
