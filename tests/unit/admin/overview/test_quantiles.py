"""Quantiles from buckets."""

from __future__ import annotations

import pytest

from sluice_s3.app.admin.overview.quantiles import Quantile, find_quantile

BOUNDS = (0.001, 0.01, 0.1)


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ((0, 0, 0, 0), 0.5, None),
        ((10, 0, 0, 0), 0.5, Quantile(0.0005, 0.0, 0.001)),
        ((0, 10, 0, 0), 1.0, Quantile(0.01, 0.001, 0.01)),
        ((50, 0, 50, 0), 0.5, Quantile(0.001, 0.0, 0.001)),
        ((50, 0, 50, 0), 0.99, Quantile(0.01 + 0.09 * 0.98, 0.01, 0.1)),
        ((0, 0, 0, 3), 0.5, Quantile(0.1, 0.1, None)),
    ],
)
def test_a_quantile_lies_in_its_bucket(counts: tuple[int, ...], share: float, expected: Quantile | None) -> None:
    found = find_quantile(BOUNDS, counts, share)
    assert found == (expected and pytest.approx(expected))
