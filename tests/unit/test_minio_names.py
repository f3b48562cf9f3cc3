"""MinIO's variables: which settings they give, by value and by file, and which change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.settings import ConfigError, Settings, minio
from sluice_s3.app.settings.environment import find_ignored


def given(**variables: str) -> Settings:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        return Settings()


@pytest.mark.parametrize(
    ("name", "setting"), [(name, setting) for setting, names in minio.NAMES.items() for name in names]
)
def test_each_name_gives_its_setting(tmp_path: Path, name: str, setting: str) -> None:
    def read(settings: Settings) -> str:
        value = getattr(settings, setting)
        return str(value.get_secret_value() if hasattr(value, "get_secret_value") else value)

    value = "public"  # which every one of them takes
    assert read(given(**{name: value})) == value
    (tmp_path / "value").write_text(value + "\n")
    assert read(given(**{f"{name}_FILE": str(tmp_path / "value")})) == value
    assert read(given(**{f"SLUICE_{setting.upper()}": "jwt", name: value})) == "jwt"


def test_which_of_several_counts(tmp_path: Path) -> None:
    (tmp_path / "sluice.toml").write_text('region = "of-the-file"\ndomain = "of-the-file"\n')
    settings = given(
        SLUICE_CONFIG=str(tmp_path / "sluice.toml"), MINIO_REGION="old", MINIO_SITE_REGION="new", MINIO_DOMAIN=""
    )
    assert (settings.region, settings.domain) == ("new", "of-the-file")


def test_a_file_may_be_a_secret_of_the_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minio, "SECRETS", tmp_path)
    (tmp_path / "minio_user").write_text("somebody")
    assert given(MINIO_ROOT_USER_FILE="minio_user").root_access_key == "somebody"


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^MINIO_ROOT_USER_FILE: /none: No such file or directory$"):
        given(MINIO_ROOT_USER_FILE="/none")
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is no text"):
        given(MINIO_ROOT_PASSWORD_FILE=str(tmp_path / "bytes"))
    (tmp_path / "open").write_text("somebody")
    (tmp_path / "open").chmod(0o666)
    with pytest.raises(ConfigError, match="all users can write"):
        given(MINIO_ROOT_PASSWORD_FILE=str(tmp_path / "open"))
    with pytest.raises(ConfigError, match="MINIO_DOMAIN or MINIO_DOMAIN_FILE, not both"):
        given(MINIO_DOMAIN="a", MINIO_DOMAIN_FILE="/b")


def test_names_that_change_nothing() -> None:
    environment = dict.fromkeys(["MINIO_BROWSER", "MINIO_API_CORS", "MINIO_ROOT_USER", "MINIO_REGION_FILE"], "x")
    environment |= {"MINIO_EMPTY": "", "MINIO_VOLUMES": "/data", "PATH": "/bin"}
    environment |= dict.fromkeys(["MINIO_SERVICE_HOST", "MINIO_PORT_9000_TCP_ADDR"], "x")  # of Kubernetes
    assert find_ignored(environment, ["MINIO_VOLUMES"]) == ["MINIO_API_CORS", "MINIO_BROWSER"]
