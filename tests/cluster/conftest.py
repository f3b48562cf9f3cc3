"""Three gateways of two workers each, shared by tests that leave them as they were."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.site import Cluster, cluster


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made
