"""MinIO's admin API: rights are checked before anything is done, or costs much."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from tests.integration.functional.identities import User, policy
from tests.integration.functional.minio_admin import Admin, refused
from tests.support.gateway import ACCESS_KEY, Gateway
from tests.support.signing import Key

_numbers = itertools.count(1)


@pytest.fixture
def admin(gateway: Gateway) -> Admin:
    return Admin(gateway)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"minio-right-{time.time_ns()}-{next(_numbers)}"


def caller(gateway: Gateway, iam: Any, *actions: str) -> Admin:
    """A new user with rights to these actions alone."""
    user = User(gateway, iam, policy(*actions))
    return Admin(gateway, Key(user.key, user.secret))


def test_rights_are_checked_before_a_body_is_decrypted(gateway: Gateway, iam: Any, name: str) -> None:
    ann = caller(gateway, iam, "s3:*")
    for answer in (
        ann.send("PUT", "add-user", b"garbage", accessKey=name),
        ann.send("POST", "update-service-account", b"garbage", accessKey=ACCESS_KEY),
    ):
        refused(answer, 403, "AccessDenied")
