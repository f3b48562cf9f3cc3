"""An admin application on a store of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.settings import make_settings
from tests.unit.admin.console_client import Console, console
from tests.unit.store.site import prepare


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Console]:
    settings = make_settings(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with console(settings) as made:
        yield made
