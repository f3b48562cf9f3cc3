"""Three gateways of two workers each, shared by tests that leave them as they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.cluster.site import Cluster, cluster


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nine processes are enough for two cores: one test of clusters at a time."""
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.xdist_group("cluster"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made
