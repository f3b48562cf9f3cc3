"""An S3 endpoint with keys for tests, and clients of it that see nothing of the developer's own."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_environment = threading.Lock()
"""Held while the environment of this process is another one."""


class Endpoint:
    """An S3 endpoint and its keys.

    `directory` is for the small file that stands in for the developer's ~/.aws/config.
    """

    def __init__(self, endpoint: str, access_key: str, secret_key: str, region: str, directory: Path) -> None:
        self.endpoint = endpoint
        self.access_key = access_key
        self.secret_key = secret_key
        self.region = region
        self.directory = directory

    @property
    def env(self) -> dict[str, str]:
        """Variables by which SDKs and the AWS CLI use this endpoint, and no configuration of the developer.

        They suffice beside any other variables: what could lead elsewhere (profiles, tokens, roles, proxies, instance
        metadata) has a value that leads nowhere. Raises RuntimeError when the server does not run.
        Source: the AWS SDKs and Tools Reference Guide.
        """
        if not self.endpoint:
            raise RuntimeError("the server does not run: start it first")
        config = self.directory / "aws-config"
        if not config.exists():
            config.write_text(f"[default]\nregion = {self.region}\n")
        proxies = os.environ.get("NO_PROXY") or os.environ.get("no_proxy", "")
        no_proxy = ",".join(filter(None, (proxies, "127.0.0.1", "localhost")))
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_SESSION_TOKEN": "",
            "AWS_SECURITY_TOKEN": "",
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_PROFILE": "default",
            "AWS_DEFAULT_PROFILE": "default",
            "AWS_CONFIG_FILE": str(config),
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_USE_FIPS_ENDPOINT": "false",
            "AWS_USE_DUALSTACK_ENDPOINT": "false",
            "NO_PROXY": no_proxy,
            "no_proxy": no_proxy,
        }

    def client(self, service: str = "s3", **options: Any) -> Any:
        """Return a boto3 client of the endpoint, which attempts each request once.

        `options` are those of `boto3.session.Session.client` and win. Raises ModuleNotFoundError without boto3.
        """
        import boto3
        from botocore.config import Config

        once = Config(retries={"total_max_attempts": 1})
        given = options.pop("config", None)
        with environment(self.env):  # read when the client is made
            return boto3.session.Session().client(
                service,
                **{
                    "endpoint_url": self.endpoint,
                    "aws_access_key_id": self.access_key,
                    "aws_secret_access_key": self.secret_key,
                    "region_name": self.region,
                    "config": once if given is None else once.merge(given),
                    **options,
                },
            )


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Give this process other variables for a moment."""
    with _environment:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def new_secret() -> str:
    """Return a secret key of 40 characters, as long as those of AWS."""
    return secrets.token_urlsafe(30)
