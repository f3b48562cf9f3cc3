"""Suites of other projects, as data: how each is built and run, and what it wants of the gateway.

In commands and environments `{endpoint}`, `{address}` (host and port), `{access_key}`, `{secret_key}` and `{bucket}`
stand for the gateway and a bucket of the run's own; `{build}` is a directory that stays, `{place}` one that does not,
`{here}` that of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.listed import (
    go_outcomes,
    java_outcomes,
    junit_outcomes,
    mint_outcomes,
    rust_outcomes,
    shell_outcomes,
)


@dataclass(frozen=True)
class Suite:
    """One suite and its rounds: each is a run on a gateway of its own, with settings and an environment added."""

    repository: str
    """On GitHub; its checkout has the last part of this name."""
    commit: str
    """The one whose tests the lists name; empty when they come as packages, without a checkout."""
    command: tuple[str, ...]
    outcomes: Callable[[Path], dict[str, str]]
    """Reads the report, which is `{place}/report.xml` if the command names it, otherwise what it printed."""
    build: tuple[str, ...] = ()
    folder: str = "."
    """Where in the checkout both are run."""
    environment: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Of the gateway: `{master}` is a fresh master key."""
    buckets: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    """Buckets with object lock."""
    keys: tuple[str, ...] = ()
    """Of SSE-KMS."""
    rounds: dict[str, dict[str, str]] = field(default_factory=lambda: {"": {}})
    """What the environment of each round adds."""
    tls: bool = False
    """The gateway speaks TLS, with a certificate that only `{certificate}` vouches for."""
    seconds: float = 7200
    """For one round."""


_RUST = {"RUSTUP_TOOLCHAIN": "stable", "CARGO_TARGET_DIR": "{build}", "CARGO_PROFILE_DEV_DEBUG": "0"}
_KEY = "strangers"
_KEY_ARN = f"arn:aws:kms:us-east-1:000000000000:key/{_KEY}"
_MASTER = {"SLUICE_MASTER_KEY": "{master}"}
_OPEN = {"SLUICE_DEFAULT_OBJECT_OWNERSHIP": "ObjectWriter", "SLUICE_DEFAULT_PUBLIC_ACCESS_BLOCK": "false"}
"""Buckets whose ACLs hold and of which nothing is blocked, for suites written for such."""
_KEYS = {"AWS_ACCESS_KEY_ID": "{access_key}", "AWS_SECRET_ACCESS_KEY": "{secret_key}"}
_PYTHON = (
    "python3 -m venv {build} && {build}/bin/pip install --quiet"
    " -r requirements.txt -r test_requirements.txt pytest-asyncio pytest-timeout"
)
_JUNIT = ("--junitxml", "{place}/report.xml", "--timeout", "600")
_MOUNTS = {
    "v4": "sigv4",
    "v2": "sigv2",
    "md5": "enable_content_md5",
    "aes256": "use_sse",
    "own-key": "use_sse=custom:/tmp/ssekey",
}
"""Options of s3fs."""

SUITES = {
    "objstore": Suite(
        repository="thanos-io/objstore",
        commit="4e5fd4289b5052ec0fed3a27dc025c364a0e354e",
        folder="objtesting",
        build=("go", "test", "-c", "-o", "{build}/objtesting.test", "."),
        command=("{build}/objtesting.test", "-test.v", "-test.run", "AcceptanceTest/aws"),
        outcomes=go_outcomes,
        environment={
            "THANOS_TEST_OBJSTORE_SKIP": "GCS,AZURE,SWIFT,COS,ALIYUNOSS,BOS,OCI,OBS",
            "THANOS_ALLOW_EXISTING_BUCKET_USE": "true",
            "S3_BUCKET": "{bucket}",
            "S3_ENDPOINT": "{address}",
            "S3_ACCESS_KEY": "{access_key}",
            "S3_SECRET_KEY": "{secret_key}",
            "S3_INSECURE": "true",
        },
        settings={"SLUICE_SIGV2": "on"},
        rounds={"v4": {}, "v2": {"S3_SIGNATURE_VERSION2": "true"}},
    ),
    "arrow-rs-object-store": Suite(
        repository="apache/arrow-rs-object-store",
        commit="978fb48b9ea6ebe3f8f4833f656e793cde79ab15",
        build=("cargo", "test", "--no-run", "--lib", "--features", "aws"),
        command=("cargo", "test", "--lib", "--features", "aws", "aws::"),
        outcomes=rust_outcomes,
        environment={
            **_RUST,
            "TEST_INTEGRATION": "1",
            "TEST_S3_SIGNATURE_ENFORCEMENT": "1",
            "AWS_DEFAULT_REGION": "us-east-1",
            **_KEYS,
            "AWS_ENDPOINT": "{endpoint}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_BUCKET": "{bucket}",
        },
        settings=_MASTER,
        buckets=tuple(f"test-bucket-for-{use}" for use in ("spawn", "checksum", "copy-if-not-exists", "signing")),
        locked=("test-object-lock",),
        keys=(_KEY,),
        rounds={
            "plain": {},
            "conditional": {"AWS_CONDITIONAL_PUT": "etag", "AWS_COPY_IF_NOT_EXISTS": "multipart"},
            "aes256": {"AWS_SERVER_SIDE_ENCRYPTION": "AES256"},
            "kms": {
                "AWS_SERVER_SIDE_ENCRYPTION": "aws:kms",
                "AWS_SSE_KMS_KEY_ID": _KEY_ARN,
            },
        },
    ),
    "distribution": Suite(
        repository="distribution/distribution",
        commit="0d6b721dc3ceacb5d678c25b718b2f40a507c2d8",
        folder="registry/storage/driver/s3-aws",
        build=("go", "test", "-c", "-o", "{build}/s3-aws.test", "."),
        # without -short it streams 5 GiB
        command=("{build}/s3-aws.test", "-test.v", "-test.short"),
        outcomes=go_outcomes,
        environment={
            "AWS_ACCESS_KEY": "{access_key}",
            "AWS_SECRET_KEY": "{secret_key}",
            "AWS_REGION": "us-east-1",
            "REGION_ENDPOINT": "{endpoint}",
            "AWS_S3_FORCE_PATH_STYLE": "true",
            "S3_BUCKET": "{bucket}",
            "S3_SECURE": "false",
            "S3_ACCELERATE": "false",
        },
        settings=_MASTER,
        rounds={"plain": {"S3_ENCRYPT": "false"}, "encrypted": {"S3_ENCRYPT": "true"}},
    ),
    "minio-go": Suite(
        repository="minio/minio-go",
        commit="e9f656c5c1d1ae3571970eb46c3005375530f049",
        build=("go", "build", "-o", "{build}/functional_tests", "functional_tests.go"),
        command=("{build}/functional_tests",),
        outcomes=mint_outcomes,
        environment={
            "SERVER_ENDPOINT": "{address}",
            "ACCESS_KEY": "{access_key}",
            "SECRET_KEY": "{secret_key}",
            "ENABLE_HTTPS": "1",
            "SSL_CERT_FILE": "{certificate}",
            "MINT_MODE": "full",
            "RUN_ON_FAIL": "1",
        },
        settings={**_MASTER, "SLUICE_SIGV2": "on", **_OPEN},
        tls=True,
    ),
    "s3fs": Suite(
        repository="fsspec/s3fs",
        commit="b7ec8db5170d8a9afeeadc9efb7b4292a335bf6b",
        build=("sh", "-c", _PYTHON),
        command=("{build}/bin/python", "-m", "pytest", "-p", "s3fs_plugin", "-p", "no:cacheprovider", *_JUNIT, "s3fs"),
        outcomes=junit_outcomes,
        environment={
            "PYTHONPATH": "{here}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "SLUICE_ENDPOINT": "{endpoint}",
            **_KEYS,
            "AWS_DEFAULT_REGION": "us-east-1",
        },
        settings={**_MASTER, **_OPEN},
    ),
    "s3fs-fuse": Suite(
        repository="s3fs-fuse/s3fs-fuse",
        commit="46017f2d9bb5043cbb7c1165f322114295fe38f2",
        build=("{here}/s3fs_fuse.sh", "build", "{build}"),
        command=("sh", "-c", '"$0" run "$1" "$2" "$OPTIONS"', "{here}/s3fs_fuse.sh", "{build}", "{place}"),
        outcomes=shell_outcomes,
        environment={
            "S3PROXY_BINARY": "",
            "S3PROXY_CACERT_FILE": "{certificate}",
            "S3_URL": "{endpoint}",
            "TEST_BUCKET_1": "{bucket}",
            **_KEYS,
        },
        settings={**_MASTER, "SLUICE_SIGV2": "on"},
        rounds={name: {"OPTIONS": options} for name, options in _MOUNTS.items()},
        tls=True,
    ),
    "hadoop": Suite(
        repository="apache/hadoop",
        commit="",
        build=("mvn", "-q", "-B", "-f", "{here}/hadoop/pom.xml", "-Dto={build}", "test-compile"),
        command=("{here}/hadoop/run.sh", "{build}", "{place}"),
        outcomes=java_outcomes,
        environment={
            "SLUICE_ENDPOINT": "{endpoint}",
            "S3_BUCKET": "{bucket}",
            **_KEYS,
        },
    ),
}
