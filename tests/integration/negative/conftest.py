"""One gateway for all negative tests; every test that asks for `site` must leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.negative.site import Site
from tests.support.gateway import Gateway

SETTINGS = {
    "SLUICE_HEADER_TIMEOUT": "2",
    "SLUICE_BODY_TIMEOUT": "2",
    "SLUICE_DISCARD_GRACE": "0",
    "SLUICE_DOMAIN": "s3.test",
    "SLUICE_COMMIT_TIMEOUT": "2",
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A gateway with two workers, small limits of time, two accounts, and something to lose."""
    with Gateway(tmp_path_factory.mktemp("negative") / "data", env=SETTINGS) as gateway:
        site = Site(gateway)
        site.build()
        yield site


@pytest.fixture
def site(built: Site) -> Iterator[Site]:
    """The gateway. When the test is over, nothing may have been stored, changed or lost outside of `fresh` buckets."""
    before = built.before or built.state()
    built.before = None
    yield built
    try:
        built.before = built.unchanged(before)
    except AssertionError:
        built.fill()  # lest every later test fails too
        raise
