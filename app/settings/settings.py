"""The frozen `Settings`, read from the environment (prefix `SLUICE_`) and the command line."""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Iterable
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    Field,
    PrivateAttr,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from sluice_s3.app.private_files import check_given, default_runtime_base
from sluice_s3.app.settings.console import ConsoleSettings
from sluice_s3.app.settings.features import FeatureSettings, names_in
from sluice_s3.app.settings.limits import LimitSettings
from sluice_s3.app.settings.load_tests import LoadTestSettings
from sluice_s3.app.settings.minio import read_minio
from sluice_s3.app.settings.stores import StoreDefaults, StoreName, StoreSettings, fill_missing

POSTGRES = ("postgresql", "postgres", "postgresql+asyncpg")
"""Schemes of Postgres URLs."""

Network = IPv4Network | IPv6Network


def is_index_url(url: str) -> bool:
    """Return whether a URL may be one of an index."""
    scheme, found, rest = url.partition("://")
    return bool(found and rest) and (scheme in POSTGRES or (scheme == "sqlite" and len(rest) > 1 and rest[0] == "/"))


def _read_file(path: Path, known: Iterable[str]) -> dict[str, Any]:
    """Return the settings of a TOML file. Raises ValueError."""
    try:
        with path.open("rb") as file:
            check_given(file.fileno(), path)
            found = tomllib.load(file)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    unknown = found.keys() - set(known) | found.keys() & {"config"}
    if unknown:
        raise ConfigError(f"{path}: there is no setting {sorted(unknown)[0]!r}")
    return found


def _networks(text: str) -> tuple[Network, ...]:
    """Parse networks. Raises ValueError."""
    return tuple(ip_network(name.strip()) for name in text.split(",") if name.strip())


class ConfigError(Exception):
    """The settings file cannot be used; the message has the reason for the operator."""


class Settings(StoreDefaults, LimitSettings, ConsoleSettings, FeatureSettings, LoadTestSettings):
    """All settings of the operator. Sizes are bytes and times are seconds."""

    # An empty variable counts as missing: compose files and the like cannot omit one.
    model_config = SettingsConfigDict(
        env_prefix="SLUICE_",
        frozen=True,
        extra="ignore",
        populate_by_name=True,
        env_ignore_empty=True,
        allow_inf_nan=False,
    )

    config: Path | None = Field(None, description="TOML file of settings; the environment goes over it.")
    data: Path = Field(
        Path("data"), description="Directory of the one backing store, `default`. Not for a server with `stores`."
    )
    stores: dict[StoreName, StoreSettings] = Field(
        {}, description="Backing stores by name; in the environment as JSON. Unset: one in `DATA`."
    )
    default_store: str | None = Field(
        None, description="Store of buckets whose LocationConstraint names none; unset: the first."
    )
    index: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("SLUICE_INDEX", "SLUICE_INDEX_URL"),
        description="URL of the index, e.g. `sqlite:////var/lib/sluice/index.db` or "
        "`postgresql://USER:PASSWORD@HOST/DATABASE` (alias `SLUICE_INDEX_URL`); unset: `index/sluice.db` in the "
        "directory of the default store, which must be local then.",
    )
    runtime_dir: Path | None = Field(
        None,
        description="Directory of locks and counters, on a local disk and of one gateway alone; unset: `run` beside an "
        "SQLite index, else one among the temporary files.",
    )
    index_connections: int = Field(
        12, ge=8, le=1000, description="Connections that a worker holds to a Postgres index at most."
    )
    index_pooler: bool = Field(
        False,
        description="The URL of a Postgres index leads to a pooler in transaction mode, such as pgbouncer: no prepared "
        "statements, no notifications, no state of sessions.",
    )
    index_timeout: float = Field(
        10, gt=0, description="A Postgres index that does not answer a read for this long counts as away until it does."
    )
    wait_index: float = Field(
        0,
        ge=0,
        description="How long a start waits for a Postgres index that does not answer yet, or whose name does not "
        "resolve yet.",
    )
    gateway_timeout: float = Field(
        15,
        ge=5,
        description="Several gateways on one Postgres index: one that gives no sign of life for this long is declared "
        "dead, and others take over what it did; the same for all of them.",
    )
    host: str = Field("127.0.0.1", description="Address of the S3 listener.")
    port: int = Field(9000, ge=0, le=65535, description="Port of the S3 listener.")
    workers: int = Field(
        default_factory=lambda: len(os.sched_getaffinity(0)),
        ge=1,
        le=256,
        description="Worker processes; unset: one a core.",
    )
    gather_connections: bool = Field(
        True,
        description="Connections gather on as few workers as carry them; off: the kernel spreads them evenly, and they "
        "stay where they are.",
    )
    admin_host: str = Field("127.0.0.1", description="Address of the admin listener (metrics, admin API).")
    admin_port: int = Field(9001, ge=-1, le=65535, description="Port of the admin listener; -1 turns it off.")
    admin_token: SecretStr | None = Field(
        None, min_length=8, description="Bearer token of the admin API; unset: generated into `DATA/admin-token`."
    )
    metrics_buckets: int = Field(
        50,
        ge=0,
        le=1000,
        description="Buckets that have series of their own in `/metrics`; the rest is `other`. 0: none by bucket.",
    )
    region: str = Field(
        "us-east-1",
        min_length=1,
        description="Region that clients sign with; `auto`: any (aliases `MINIO_SITE_REGION`, `MINIO_REGION`, "
        "`MINIO_REGION_NAME`).",
    )
    domain: str = Field(
        "",
        description="Domain for virtual-host addressing (`BUCKET.DOMAIN`); more than one with commas (alias "
        "`MINIO_DOMAIN`).",
    )
    root_access_key: str | None = Field(
        None,
        description="First account's access key; unset: generated (aliases `MINIO_ROOT_USER`, `MINIO_ACCESS_KEY`; each "
        "alias of MinIO also with `_FILE`: a file that holds the value).",
    )
    root_secret_key: SecretStr | None = Field(
        None,
        description="First account's secret key; unset: generated (aliases `MINIO_ROOT_PASSWORD`, `MINIO_SECRET_KEY`).",
    )
    tls_cert: Path | None = Field(None, description="PEM certificate chain; with it the S3 listener speaks TLS.")
    tls_key: Path | None = Field(None, description="PEM private key of the certificate.")
    init_file: Path | None = Field(
        None, description="TOML file of accounts, users, policies, keys and buckets that are made at start."
    )
    default_buckets: str = Field(
        "",
        description="Buckets made at start for the first account, with commas; `NAME:download`, `NAME:upload`, "
        "`NAME:public` and `NAME:none` also say, at every start, what it allows without a key (alias "
        "`MINIO_DEFAULT_BUCKETS`).",
    )
    prometheus_auth: Literal["jwt", "public"] = Field(
        "jwt",
        description="Who may read `/minio/v2/metrics/cluster` on the S3 listener: `jwt`: with the admin token, or with "
        "the one that `mc admin prometheus generate` makes; `public`: everybody (alias `MINIO_PROMETHEUS_AUTH_TYPE`).",
    )
    trusted_proxies: str = Field(
        "", description="Addresses and networks (`10.0.0.0/8`), with commas, whose `X-Forwarded-For` is believed."
    )
    sigv2: Literal["off", "query", "on"] = Field(
        "query", description="Signature version 2: refused, in presigned URLs only, or also in headers."
    )
    durability: Literal["full", "relaxed"] = Field(
        "full", description="`full`: synced before 200. `relaxed`: a power cut may lose acknowledged writes."
    )
    server_timing: bool = Field(False, description="Send phases as `Server-Timing` on successful authorised answers.")
    fast_lane: bool = Field(
        True, description="Start requests eagerly, without a task until they first wait; off only to compare."
    )
    traces: bool = Field(
        False,
        description="Send a span a request by OpenTelemetry, whose own variables (`OTEL_EXPORTER_OTLP_ENDPOINT`) say "
        "where to; needs the extra `otel`.",
    )
    access_log: bool = Field(True, description="One JSON line a request on standard output.")
    lifecycle_day_seconds: int = Field(
        86_400, ge=1, le=86_400, description="Seconds of a day of lifecycle rules; fewer are for tests of rules."
    )
    lifecycle_rate: int = Field(
        1000, ge=1, description="Versions and uploads that lifecycle rules take away in a second at most."
    )
    default_object_ownership: Literal["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] = Field(
        "BucketOwnerEnforced", description="Object ownership of new buckets; with the other two, ACLs hold."
    )
    default_public_access_block: bool = Field(True, description="Whether new buckets block all public access.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Rank the sources: the command line, the environment (MinIO's names last), the file."""
        given = init_settings()
        path = given.get("config") or os.environ.get("SLUICE_CONFIG")
        try:
            of_minio = InitSettingsSource(settings_cls, read_minio(os.environ))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        sources = (init_settings, env_settings, of_minio)
        return (
            (*sources, InitSettingsSource(settings_cls, _read_file(Path(path), cls.model_fields))) if path else sources
        )

    @field_validator("trusted_proxies")
    @classmethod
    def _check_networks(cls, text: str) -> str:
        _networks(text)
        return text

    @model_validator(mode="after")
    def _check_stores(self) -> Settings:
        if self.default_store is not None and self.default_store not in self.named_stores:
            raise ValueError(f"default_store: there is no store {self.default_store!r}")
        if self.stores and "data" in self.model_fields_set:
            raise ValueError("give data or stores, not both: with stores, the one without a name is called 'default'")
        for storage_class, name in self.class_stores.items():
            if name not in self.named_stores or self.named_stores[name].layout == "tree":
                raise ValueError(f"storage_classes: {storage_class}: there is no store {name!r} of layout objects")
        paths = [store.path for store in self.named_stores.values() if store.path is not None]
        if len({path.absolute() for path in paths}) < len(paths):
            raise ValueError("stores: two have the same path")
        if both := self.named_stores.keys() & self.named_bench_targets.keys():
            raise ValueError(f"bench_targets: {min(both)} is the name of a store")
        if self.index is None and self.named_stores[self.first_store].driver != "local":
            raise ValueError("index: must be given, because the default store is not on a local disk")
        return self

    @model_validator(mode="after")
    def _check_index(self) -> Settings:
        if self._index is not None and not is_index_url(self._index):
            # without the value, which may contain a password
            raise ValueError("index: the URL must be sqlite:///PATH or postgresql://…")
        automatic = self.master_key_auto and self.index_url is None
        if self.default_encryption != "none" and not (self.names_master_key or automatic):
            raise ValueError("default_encryption: it needs a master key")
        return self

    _options: frozenset[str] = PrivateAttr(frozenset())

    @property
    def options(self) -> frozenset[str]:
        """Names of the settings that options of the command line gave."""
        return self._options

    def note_options(self, names: Iterable[str]) -> None:
        """Remember which settings options of the command line gave."""
        self._options = frozenset(names)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """See `fill_missing`."""
        private = state.get("__pydantic_private__") or {"_options": frozenset()}  # code of before had none
        super().__setstate__({**fill_missing(self, state), "__pydantic_private__": private})

    @property
    def _index(self) -> str | None:
        return None if self.index is None else self.index.get_secret_value()

    @property
    def index_url(self) -> str | None:
        """The URL of an index in Postgres, with its password; None for SQLite."""
        url = self._index
        return url if url is not None and url.startswith(POSTGRES) else None

    @cached_property
    def named_stores(self) -> dict[str, StoreSettings]:
        """All stores by name, with defaults from the other settings."""
        stores = self.stores or {"default": StoreSettings.model_validate({"path": self.data})}
        inherited = ("durability", "etag", "pack_threshold", "pack_size", "io_threads", "read_cache", "hang_timeout")
        return {
            name: store.model_copy(
                update={field: getattr(self, field) for field in inherited if getattr(store, field) is None}
            )
            for name, store in stores.items()
        }

    @property
    def first_store(self) -> str:
        """The name of the default store."""
        return self.default_store or next(iter(self.named_stores))

    @property
    def home(self) -> Path:
        """The directory of the gateway's own files: generated keys, tokens, the index if not elsewhere."""
        if not self.stores:
            return self.data
        store = self.named_stores[self.first_store]
        if self.index is None or (self.index_url is not None and store.directory is not None):
            assert store.directory is not None
            return store.directory
        return self.run_dir if self.index_url is not None else self.index_path.parent

    @property
    def index_path(self) -> Path:
        """The SQLite file of the index."""
        url = self._index
        return self.home / "index" / "sluice.db" if url is None else Path(url.partition(":///")[2])

    @property
    def index_is_missing(self) -> bool:
        """Whether there is no index yet, as far as visible without a connection."""
        return self.index_url is None and not self.index_path.exists()

    @property
    def run_dir(self) -> Path:
        """The directory of locks and shared counters, on a local disk.

        It is beside the index, or belongs to this gateway alone.
        """
        if self.runtime_dir is not None:
            return self.runtime_dir
        if self.index_url is None:
            return self.index_path.parent / "run"
        places = [str(store.path and store.path.absolute()) + str(store.url) for store in self.named_stores.values()]
        name = hashlib.sha256("\n".join(places).encode()).hexdigest()[:16]
        return default_runtime_base() / f"sluice-{os.geteuid()}-{name}"

    @property
    def proxies(self) -> tuple[Network, ...]:
        """The networks of `trusted_proxies`."""
        return _networks(self.trusted_proxies)

    @property
    def domains(self) -> tuple[str, ...]:
        """Domains for virtual-host addressing, in lower case."""
        return names_in(self.domain)
