"""The stores that the walk over locked objects is on."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from sluice_s3.app.settings import Settings
from tests.unit.s3.plane import ROOT
from tests.unit.store.site import prepare

SHARED = Path("/dev/shm")
HOME = SHARED if SHARED.is_dir() else None
THRESHOLD = 2_000
TOML = f"""
root_access_key = "{ROOT.access}"
root_secret_key = "{ROOT.secret}"
durability = "relaxed"
pack_threshold = {THRESHOLD}
pack_size = {1 << 20}
storage_classes = "GLACIER=slow"
index = "sqlite:///HERE/index/sluice.db"
[stores.fast]
path = "HERE/fast"
[stores.slow]
path = "HERE/slow"
"""


def settings_in(path: Path) -> Settings:
    """Two stores, one of which archives."""
    config = path / "sluice.toml"
    config.write_text(TOML.replace("HERE", str(path)))
    return Settings(config=config)


@cache
def _template() -> Path:
    made = Path(tempfile.mkdtemp(dir=HOME, prefix="sluice-locks-"))
    atexit.register(shutil.rmtree, made)
    prepare(settings_in(made))
    return made


def prepared(target: Path) -> Settings:
    """New stores in an empty directory: a copy of those that were prepared once."""
    shutil.copytree(_template(), target, symlinks=True, dirs_exist_ok=True)
    return settings_in(target)
