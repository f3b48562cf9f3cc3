"""A console in this process."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare

TOKEN = "sesame-sesame"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was prepared once: each test begins with a copy."""
    path = tmp_path_factory.mktemp("console")
    prepare(make_settings(path))
    return path / "data"


@pytest.fixture
def settings(tmp_path: Path, prepared: Path) -> Settings:
    shutil.copytree(prepared, tmp_path / "data")
    return make_settings(tmp_path, admin_token=TOKEN)


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Console]:
    async with console(settings) as found:
        yield found
