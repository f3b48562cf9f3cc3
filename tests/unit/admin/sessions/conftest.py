"""A console in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.settings import Settings
from tests.support.settings import make_settings
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare

TOKEN = "sesame-sesame"


@pytest.fixture
async def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, admin_token=TOKEN)
    await asyncio.to_thread(prepare, made)
    return made


@pytest.fixture
async def site(settings: Settings) -> AsyncIterator[Console]:
    async with console(settings) as found:
        yield found
