"""A gateway with two stores: `good` on a directory, `odd` on whatever a test puts at its path."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

TOML = """\
index = "sqlite:///{root}/index/sluice.db"
hang_timeout = {limit}
discard_grace = 0.0
graceful_timeout = 3.0
pack_threshold = 4096
"""
STORE = """
[stores.{name}]
path = "{path}"
driver = "{driver}"
layout = "{layout}"
io_threads = 4
"""
SMALL, LARGE = b"small " * 100, b"large " * 100_000
BODIES = {"small": SMALL, "large": LARGE}


def stores(
    root: Path, named: dict[str, tuple[Path, str]], *, limit: float = 1.0, trees: Collection[str] = (), **env: str
) -> Gateway:
    """A gateway, to be started, with stores of these paths and drivers; the first is the default one."""
    config = root / "sluice.toml"
    text = [
        STORE.format(name=name, path=path, driver=driver, layout="tree" if name in trees else "objects")
        for name, (path, driver) in named.items()
    ]
    config.write_text(TOML.format(root=root, limit=limit) + "".join(text))
    env = {"SLUICE_CONFIG": str(config), "SLUICE_ADMIN_TOKEN": "admin-token", **env}
    return Gateway(root / "gateway", 1, env=env, given=(), options=("--admin-port", "0"))


def two(root: Path, odd: Path, *, driver: str = "fuse", limit: float = 1.0, trees: Collection[str] = ()) -> Gateway:
    """A gateway with the stores `good` and `odd`."""
    return stores(root, {"good": (root / "good", "local"), "odd": (odd, driver)}, limit=limit, trees=trees)


def filled(gateway: Gateway, **config: Any) -> Any:
    """A client, with the buckets `good` and `odd` on the stores of those names and an old object of each size."""
    s3 = client(gateway.endpoint, **config)
    for name in ("good", "odd"):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": f"us-east-1:{name}"})
        for size, body in BODIES.items():
            put(s3, f"old-{size}", body, name)
    return s3


def put(s3: Any, key: str, body: bytes, bucket: str = "odd") -> None:
    """Put an object, again while a busy machine keeps a sound mount from answering within the limit."""
    eventually(lambda: outcome(s3.put_object, Bucket=bucket, Key=key, Body=body)[0] == 200, f"PUT of {key}")


def outcome(call: Callable[..., Any], **arguments: Any) -> tuple[int, str]:
    """Status and code of a call; 0 when its connection was cut."""
    try:
        answer = call(**arguments)
        if "Body" in answer:
            answer["Body"].read()
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"]), error.response["Error"]["Code"]
    except BotoCoreError:
        return 0, "cut"
    return int(answer["ResponseMetadata"]["HTTPStatusCode"]), ""


def get(s3: Any, key: str, bucket: str = "odd") -> bytes:
    """An object's bytes."""
    body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    return body


def metric(gateway: Gateway, name: str, store: str) -> float:
    """A gauge of a store, as the admin listener tells it."""
    lines = httpx.get(f"{gateway.admin}/metrics", timeout=30).text.splitlines()
    beginning = f'sluice_store_{name}{{store="{store}"}} '
    return next(float(line.removeprefix(beginning)) for line in lines if line.startswith(beginning))
