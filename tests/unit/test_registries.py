"""Lists that must agree, where a missing entry would go unnoticed: no error, only a default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice_s3.app.s3 import handlers, routing
from sluice_s3.app.s3.logging import record
from sluice_s3.app.settings.stores import StoreSettings
from sluice_s3.app.store import stores
from sluice_s3.loadtests.compare import plan
from sluice_s3.loadtests.compare import stores as bench
from sluice_s3.loadtests.report import chapters
from sluice_s3.loadtests.report.chapters import mixes, raw_data
from sluice_s3.loadtests.report.model import MIXES
from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from tests.reliability.crash import power
from tests.support import places
from tests.unit.storage_drivers.conftest import IDS

RESULTS = Path(places.__file__).with_suffix(".json")


def test_every_operation_has_a_name_in_the_access_log() -> None:
    """Without one it would be logged as `METHOD.BUCKET` or `METHOD.OBJECT`."""
    handlers.register()
    unnamed = {
        operation.name
        for (_, level, subresource), operation in routing.ROUTES.items()
        if level != "service" and operation.name not in record.OPERATIONS and subresource not in record.SUBRESOURCES
    }
    assert unnamed == set()


def test_every_scenario_has_its_chapter() -> None:
    """Without one the report would not show what was measured. Every module of chapters is used."""
    names = [path.stem for path in Path(chapters.__file__).parent.glob("*.py") if path.stem != "__init__"]
    modules = [import_module(f"{chapters.__name__}.{name}") for name in names]
    used = {chapter.__module__ for chapter in chapters.OF_SCENARIO.values()} | {raw_data.__name__}
    assert set(plan.SCENARIOS) <= set(chapters.OF_SCENARIO)
    assert used == {module.__name__ for module in modules if hasattr(module, "chapter")}
    of_mixes = {name for name, chapter in chapters.OF_SCENARIO.items() if chapter is mixes.chapter}
    assert of_mixes == set(mixes.TITLES) == set(MIXES)


@pytest.mark.parametrize("name", plan.SCENARIOS)
def test_every_scenario_has_an_estimate_of_its_bytes(name: str) -> None:
    """Without one it would be estimated as a mix, if it has a duration."""
    for options in (plan.SCENARIOS[name].quick, plan.SCENARIOS[name].full):
        estimate = plan._bytes(name, options)
        assert estimate > 0
        if name not in MIXES and {"duration", "warm-up"} <= options.keys():
            assert estimate != plan._bytes("mixed", options)


def test_the_lists_of_drivers_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver that a gateway knows is in its settings, can be measured, and is tested on a place."""
    classes = {name: getattr(import_module(module), found) for name, (module, found) in stores.DRIVERS.items()}
    # the one of test suites lies on no mount of its own: it is tested in test_faulty.py
    with_path = {name for name, found in classes.items() if issubclass(found, ObjectsDriver)} - {"faulty"}
    assert set(re.findall(r"`(\w+)`", StoreSettings.model_fields["driver"].description or "")) == set(classes)
    assert set(bench.DRIVERS) == set(IDS) == with_path
    assert drivers_of_places(tmp_path, monkeypatch) == set(classes) - {"faulty"}


def test_results_are_of_places_that_there_are() -> None:
    assert set(json.loads(RESULTS.read_text())) <= set(places.PLACES)


def drivers_of_places(directory: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The drivers of all kinds of places, none of which is mounted."""

    @contextmanager
    def unmounted(where: Path, *_: object, **__: object) -> Iterator[Any]:
        nothing = lambda: None  # noqa: E731
        yield SimpleNamespace(mount=where, cut=nothing, restore=nothing, restart=nothing)

    @contextmanager
    def unmounted_at(where: Path, *_: object) -> Iterator[Path]:
        yield where

    for name in ("need", "need_fuse", "need_root"):
        monkeypatch.setattr(places, name, lambda *_: None)
    monkeypatch.setattr(places, "mounted", unmounted)
    monkeypatch.setattr(places, "_mount", unmounted_at)
    monkeypatch.setattr(power, "disk_of", unmounted)
    found = set()
    for kind in places.PLACES:
        (directory / kind).mkdir()
        with places.placed(directory / kind, kind) as place:
            found.add(place.store.get("driver", "local"))
    return found
