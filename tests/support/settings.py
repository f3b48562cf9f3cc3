"""Settings of a gateway in a test's own directory."""

from __future__ import annotations

from pathlib import Path

from sluice_s3.app.settings import Settings
from tests.support.signing import Key

ROOT = Key("ROOTKEY", "root-secret-key")
"""The keys of the first account."""


def make_settings(path: Path, **options: object) -> Settings:
    """Make settings with the keys of `ROOT`, which sync nothing and have no key ring.

    The data are in `path`, unless `stores` says where. A test that wants a key ring makes it
    (`tests.unit.jobs.encrypted`). `options` replace and add to what is given here.
    """
    given: dict[str, object] = {
        "root_access_key": ROOT.access,
        "root_secret_key": ROOT.secret,
        "durability": "relaxed",
        "master_key_auto": False,
    }
    if "stores" not in options:
        given["data"] = path / "data"
    return Settings(**{**given, **options})  # type: ignore[arg-type]
