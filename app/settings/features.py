"""Settings for features of buckets: a part of `app.settings.Settings`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, field_validator, model_validator
from pydantic_settings import BaseSettings

TargetName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


STORAGE_CLASSES = frozenset(
    ["REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"]
)
"""Classes that can have a store; objects of STANDARD are on the stores of their buckets."""


def classes_in(text: str) -> dict[str, str]:
    """Return the stores of storage classes from a text such as `STANDARD_IA=slow,GLACIER=cold`.

    Raises ValueError.
    """
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, store = map(str.strip, entry.partition("="))
        if name not in STORAGE_CLASSES:
            raise ValueError(f"storage_classes: {name!r} is none of {', '.join(sorted(STORAGE_CLASSES))}")
        if not store or name in found:
            raise ValueError(f"storage_classes: {name} must have one store")
        found[name] = store
    return found


def names_in(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list, in lower case."""
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


class NotifyTarget(BaseModel):
    """A target of event notifications."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["webhook", "nats", "kafka", "amqp"] = "webhook"
    url: SecretStr = Field(
        description="Where it is; for kafka `HOST:PORT`, with commas more than one. "
        "`USER:PASSWORD@` of a webhook is sent as `Authorization: Basic`."
    )
    topic: str = Field("", description="Subject (nats), topic (kafka) or routing key (amqp).")
    exchange: str = Field("", description="Of amqp; empty: the default one, where the routing key is a queue's name.")
    jetstream: bool = Field(False, description="Of nats: wait until a stream has stored it.")
    token: SecretStr | None = Field(None, description="Of a webhook: sent as `Authorization: Bearer TOKEN`.")
    timeout: float = Field(10, gt=0, description="Seconds that it may take for one message.")

    @model_validator(mode="after")
    def _check(self) -> NotifyTarget:
        address = self.url.get_secret_value()
        if self.kind == "webhook" and not address.startswith(("http://", "https://")):
            raise ValueError("url: a webhook is http:// or https://")
        if self.kind == "webhook":
            self._check_webhook(address)
        if self.kind != "webhook" and not self.topic:
            raise ValueError(f"topic: {self.kind} needs one")
        return self

    def _check_webhook(self, address: str) -> None:
        """Check the URL of a webhook.

        No message contains a part of the URL, which may be a password.
        """
        try:
            url = urlsplit(address)
            host, _ = url.hostname, url.port
        except ValueError:
            host = None
        if not host:
            raise ValueError("url: a webhook has a host and perhaps a port (percent-encode what a password holds)")
        if url.username is not None and self.token is not None:
            raise ValueError("token: the URL has credentials already")


class FeatureSettings(BaseSettings):
    """Settings of bucket features. Sizes are bytes and times are seconds."""

    website_domain: str = Field(
        "", description="Domain of websites (`BUCKET.DOMAIN`), with commas more than one; unset: none are served."
    )
    website_port: int = Field(
        -1,
        ge=-1,
        le=65535,
        description="Port of websites only, where any host name is a bucket's; -1: none.",
    )
    log_interval: float = Field(
        300, gt=0, description="Lines of a bucket's access log become an object when the oldest is this old."
    )
    default_encryption: Literal["none", "AES256"] = Field("none", description="Default encryption of new buckets.")
    master_key: SecretStr | None = Field(
        None, description="Master key, which seals the key ring: 32 bytes as base64 (`sluice key new-master`)."
    )
    master_key_file: Path | None = Field(None, description="File that holds the master key.")
    master_key_command: str | None = Field(None, description="Command that prints the master key.")
    master_key_auto: bool = Field(
        True,
        description="Where no master key is given, the first start on an SQLite index makes one in `DATA/master-key`.",
    )
    customer_keys_over_http: bool = Field(
        True, description="Take keys of customers (SSE-C) without TLS too, as behind a balancer; AWS never does."
    )

    @model_validator(mode="after")
    def _check_encryption(self) -> Self:
        given = [key for key in (self.master_key, self.master_key_file, self.master_key_command) if key is not None]
        if len(given) > 1:
            raise ValueError("give one of master_key, master_key_file and master_key_command")
        return self

    notify_targets: dict[TargetName, NotifyTarget] = Field(
        {}, description="Whom notifications of buckets may name, by name; in the environment as JSON."
    )
    notify_retention: float = Field(
        604_800, gt=0, description="A message that cannot be delivered is given up when it is this old."
    )
    notify_refusals: int = Field(
        10,
        ge=1,
        description="A message that its target refuses for good (most 4xx of a webhook, or too large) is given up "
        "after so many attempts, if the target takes others meanwhile.",
    )

    audit_retention_days: int = Field(
        365, ge=1, le=36_500, description="Days for which the log of administrative changes is kept."
    )
    inventory_day_seconds: int = Field(
        86_400, ge=1, description="How long a day of inventories is; shorter ones are for tests."
    )

    storage_classes: str = Field(
        "",
        description="Stores of storage classes, e.g. `STANDARD_IA=slow,GLACIER=cold`: what is written in such a "
        "class, or comes to it by lifecycle rules, lies there, and in `GLACIER` and `DEEP_ARCHIVE` must be restored to "
        "be read; the names of other classes are only kept.",
    )
    transition_rate: int = Field(
        64 * 1024 * 1024, ge=1024, description="Bytes a second that lifecycle rules move between stores at most."
    )

    @field_validator("storage_classes")
    @classmethod
    def _check_classes(cls, text: str) -> str:
        classes_in(text)
        return text

    @property
    def names_master_key(self) -> bool:
        """Whether a master key is configured, in any way."""
        return not (self.master_key is None and self.master_key_file is None and self.master_key_command is None)

    @property
    def class_stores(self) -> dict[str, str]:
        """The stores of storage classes."""
        return classes_in(self.storage_classes)

    @property
    def website_domains(self) -> tuple[str, ...]:
        """Domains of websites, in lower case."""
        return names_in(self.website_domain)
