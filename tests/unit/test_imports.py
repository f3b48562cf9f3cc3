"""No module imports another in a circle, imports for types included."""

from __future__ import annotations

import graphlib

import grimp
import pytest

PACKAGES = (
    "sluice_s3.app",
    "sluice_s3.loadtests",
    "sluice_s3.migrations",
    "sluice_s3.storage_drivers",
    "sluice_s3.testing",
)


def in_order(imports: dict[str, set[str]]) -> list[str]:
    """Raises CycleError, which names a circle."""
    return list(graphlib.TopologicalSorter(imports).static_order())


def test_no_module_is_in_a_circle() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 500
    assert len(in_order(imports)) == len(imports)


def test_a_circle_is_found() -> None:
    with pytest.raises(graphlib.CycleError):
        in_order({"a": {"b"}, "b": {"c"}, "c": {"a"}})
