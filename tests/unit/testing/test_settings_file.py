"""The settings file of a server for tests: what is written is what TOML reads."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.settings import Settings
from sluice_s3.testing.settings_file import default_settings, toml, write_settings

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    TEXT | st.booleans() | st.integers(-(1 << 62), 1 << 62) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


@given(VALUES)
def test_toml_reads_what_was_written(value: object) -> None:
    assert tomllib.loads(f"it = {toml(value)}") == {"it": value}


def test_no_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="None"):
        write_settings(tmp_path / "file", {"region": None})


def test_settings_are_valid_and_private(tmp_path: Path) -> None:
    path = tmp_path / "sluice.toml"
    write_settings(path, default_settings(tmp_path, "KEY", "secret-of-the-key"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    settings = Settings(config=path)
    assert settings.workers == 1
    assert settings.admin_port == -1
    assert settings.named_stores["default"].driver == "faulty"
    assert settings.named_stores["default"].durability == "relaxed"
    assert settings.index_path == tmp_path / "index" / "sluice.db"
    with pytest.raises(FileExistsError):
        write_settings(path, {})
