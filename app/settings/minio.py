"""MinIO's variables for settings of the gateway, so that a set-up made for MinIO starts as it is.

Source: MinIO's "Core Settings" and the entry points of its images (`_FILE`, `MINIO_DEFAULT_BUCKETS`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from sluice_s3.app.private_files import check_given

PREFIX = "MINIO_"
FILE = "_FILE"
"""Suffix of a variable that names a file with the value."""
SECRETS = Path("/run/secrets")
"""Directory of the files that a container engine gives by name."""
LARGEST_FILE = 64 * 1024
"""Bytes of a value in a file."""
NAMES = {
    "root_access_key": ("MINIO_ROOT_USER", "MINIO_ACCESS_KEY"),
    "root_secret_key": ("MINIO_ROOT_PASSWORD", "MINIO_SECRET_KEY"),
    "region": ("MINIO_SITE_REGION", "MINIO_REGION", "MINIO_REGION_NAME"),
    "domain": ("MINIO_DOMAIN",),
    "default_buckets": ("MINIO_DEFAULT_BUCKETS",),
    "prometheus_auth": ("MINIO_PROMETHEUS_AUTH_TYPE",),
}
"""Variables by setting; of several that are given the first one counts."""


def variables_of(setting: str) -> Iterable[str]:
    """Return the names of MinIO's variables that give a setting, the first one first."""
    return [name + suffix for name in NAMES.get(setting, ()) for suffix in ("", FILE)]


def read_minio(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that MinIO's variables give. Empty variables count as missing.

    Raises ValueError for a file that cannot be read, and for a variable that is given in both forms.
    """
    found: dict[str, str] = {}
    for setting, names in NAMES.items():
        for name in names:
            value = _read(name, environment)
            if value:
                found.setdefault(setting, value)
    return found


def _read(name: str, environment: Mapping[str, str]) -> str:
    value, file = environment.get(name, ""), environment.get(name + FILE, "")
    if not file:
        return value
    if value:
        raise ValueError(f"give {name} or {name}{FILE}, not both")
    path = Path(file) if os.path.exists(file) else SECRETS / file
    try:
        with path.open("rb") as opened:
            check_given(opened.fileno(), path)
            return opened.read(LARGEST_FILE).decode().strip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{name}{FILE}: {path}: this file is no text") from None
    except OSError as error:
        raise ValueError(f"{name}{FILE}: {path}: {error.strerror}") from None
