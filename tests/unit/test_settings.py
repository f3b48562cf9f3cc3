"""Settings of several stores: file, environment, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from pydantic import ValidationError

from sluice_s3.app.settings import ConfigError, Settings

FILE = """\
region = "eu-west-1"
durability = "relaxed"
pack_size = 2000000

[stores.fast]
path = "/srv/fast"
durability = "full"

[stores.slow]
path = "/mnt/slow"
io_threads = 4
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("SLUICE_DATA", "SLUICE_STORES", "SLUICE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "sluice.toml"
    path.write_text(FILE)
    return path


def test_one_store_is_named_default(config: Path) -> None:
    settings = Settings(data=Path("/srv/data"))
    assert list(settings.named_stores) == ["default"]
    assert settings.named_stores["default"].path == settings.home == Path("/srv/data")
    assert settings.index_path == Path("/srv/data/index/sluice.db")


def test_a_file_names_stores_and_they_inherit(config: Path) -> None:
    settings = pickle.loads(pickle.dumps(Settings(config=config)))
    fast, slow = settings.named_stores.values()
    assert (fast.durability, fast.pack_size, fast.io_threads) == ("full", 2_000_000, 32)
    assert (slow.durability, slow.pack_size, slow.io_threads) == ("relaxed", 2_000_000, 4)
    assert (settings.region, settings.first_store) == ("eu-west-1", "fast")
    assert settings.index_path == Path("/srv/fast/index/sluice.db")


def test_the_environment_goes_over_the_file_and_options_over_both(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CONFIG", str(config))
    monkeypatch.setenv("SLUICE_REGION", "eu-west-2")
    monkeypatch.setenv("SLUICE_PACK_SIZE", "3000000")
    monkeypatch.setenv("SLUICE_DEFAULT_STORE", "slow")
    monkeypatch.setenv("SLUICE_STORES", json.dumps({"slow": {"io_threads": 5}, "new": {"path": "/srv/new"}}))
    settings = Settings(pack_size=4_000_000)
    assert (settings.region, settings.pack_size, settings.first_store) == ("eu-west-2", 4_000_000, "slow")
    assert settings.named_stores["slow"].io_threads == 5
    assert settings.named_stores["slow"].path == Path("/mnt/slow")
    assert settings.named_stores["new"].path == Path("/srv/new")


def test_stores_of_the_environment_alone(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_STORES", json.dumps({"a": {"path": "/srv/a"}, "b": {"path": "/srv/b"}}))
    assert list(Settings().named_stores) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[stores.Bad]\npath = "/a"', "pattern"),
        ("[stores.a]\n", "path or url"),
        ('[stores.a]\npath = "/a"\nurl = "memory://a"', "path or url"),
        ('[stores.a]\npath = "/a"\n[stores.b]\npath = "/a"', "same path"),
        ('[stores.a]\npath = "/a"\ntreshold = 1', "treshold"),
        ('[stores.a]\nurl = "memory://a"\ndriver = "fsspec"', "index"),
        ('[stores.a]\npath = "/a"\n[stores.b]\nurl = "memory://b"\nmin_free = 1', "min_free"),
        ('default_store = "b"\n[stores.a]\npath = "/a"', "no store 'b'"),
        ('data = "/d"\n[stores.a]\npath = "/a"', "not both"),
    ],
)
def test_what_is_refused(config: Path, text: str, words: str) -> None:
    config.write_text(text)
    with pytest.raises(ValidationError, match=words):
        Settings(config=config)


@pytest.mark.parametrize(("text", "words"), [("a = ", "sluice.toml"), ("regoin = 'x'", "'regoin'")])
def test_a_file_that_cannot_be_used(config: Path, text: str, words: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigError, match=words):
        Settings(config=config)
    with pytest.raises(ConfigError, match="No such file"):
        Settings(config=config.with_name("none"))


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROOT_ACCESS_KEY", "ROOT_SECRET_KEY", "ADMIN_TOKEN", "WORKERS", "INDEX", "PORT", "CONFIG"):
        monkeypatch.setenv(f"SLUICE_{name}", "")
    settings = Settings()
    assert (settings.root_access_key, settings.root_secret_key, settings.admin_token) == (None, None, None)
    assert (settings.index, settings.port) == (None, 9000)


def test_an_empty_variable_leaves_its_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ROOT_ACCESS_KEY", "")
    monkeypatch.setenv("MINIO_ROOT_USER", "olduser")
    assert Settings().root_access_key == "olduser"


def test_proxies_are_networks() -> None:
    settings = Settings(trusted_proxies="10.0.0.0/8, fd00::1")
    assert list(map(str, settings.proxies)) == ["10.0.0.0/8", "fd00::1/128"]
    assert Settings().proxies == ()
    for wrong in ("balancer", "10.0.0.1/8"):
        with pytest.raises(ValidationError, match="trusted_proxies"):
            Settings(trusted_proxies=wrong)


@pytest.mark.parametrize(
    "given",
    [
        "STANDARD=slow",
        "STANDARD_IA",
        "STANDARD_IA=",
        "COLD=slow",
        "STANDARD_IA=none",
        "GLACIER=files",
        "GLACIER=slow,GLACIER=fast",
    ],
)
def test_storage_classes_that_cannot_be(tmp_path: Path, given: str) -> None:
    stores = {"fast": {"path": tmp_path / "a"}, "slow": {"path": tmp_path / "b"}}
    stores["files"] = {"path": tmp_path / "c", "layout": "tree"}
    with pytest.raises(ValidationError, match="storage_classes"):
        Settings(stores=stores, storage_classes=given)  # type: ignore[call-arg, arg-type]


def test_storage_classes_with_stores(tmp_path: Path) -> None:
    stores = {"fast": {"path": tmp_path / "a"}, "slow": {"path": tmp_path / "b"}}
    made = Settings(stores=stores, storage_classes="STANDARD_IA=slow, GLACIER=fast,")  # type: ignore[call-arg, arg-type]
    assert made.class_stores == {"STANDARD_IA": "slow", "GLACIER": "fast"}
    assert Settings().class_stores == {}  # type: ignore[call-arg]


def test_settings_of_an_earlier_launcher_get_the_fields_that_they_lack(tmp_path: Path) -> None:
    """A rolling restart starts new code with settings that the old code pickled."""
    settings = Settings(stores={"fast": {"path": tmp_path}}, read_cache=7)  # type: ignore[arg-type, call-arg, dict-item]
    assert settings.named_stores["fast"].etag == "md5"
    for model in (settings, settings.stores["fast"], settings.named_stores["fast"]):
        del model.__dict__["etag"]
    started = pickle.loads(pickle.dumps(settings))
    assert (started.etag, started.read_cache) == ("md5", 7)
    assert (started.named_stores["fast"].etag, started.named_stores["fast"].read_cache) == ("md5", 7)
    assert started.named_stores["fast"].path == tmp_path
