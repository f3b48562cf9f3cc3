"""Names of buckets of tests."""

from __future__ import annotations

import re

import pytest

from sluice_s3.testing.buckets import bucket_name

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
VALID = re.compile(r"(?!xn--)[a-z0-9](?:[a-z0-9-]{1,61})[a-z0-9]")


@pytest.mark.parametrize("test", ["test_upload", "test_a[ü/..]", "", "___", "x" * 300, "test_" + "é" * 45 + "a-"])
def test_every_test_has_a_valid_name(test: str) -> None:
    names = {bucket_name(test) for _ in range(20)}
    assert len(names) == 20
    assert all(VALID.fullmatch(name) for name in names)
