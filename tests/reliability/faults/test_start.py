"""The server starts while a store of several hangs or is away, and takes it up when it is good again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from sluice_s3.loadtests.mounts import mounted
from tests.reliability.faults.two import BODIES, LARGE, filled, get, metric, outcome, stores, two
from tests.support.environment import need_fuse
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

DOWN = (503, "ServiceUnavailable")


def told(gateway: Gateway) -> str:
    """What it logged and printed."""
    return gateway.data.with_name(f"{gateway.data.name}.log").read_text()


def shown(gateway: Gateway, name: str) -> dict[str, Any]:
    """A store, as the admin API tells it."""
    answer = httpx.get(
        f"{gateway.admin}/api/v1/stores/{name}", headers={"authorization": "Bearer admin-token"}, timeout=30
    )
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


def is_down(gateway: Gateway, identity: str) -> Any:
    """The store `odd` answers 503 and everybody is told so; all else goes on. Returns a client."""
    s3 = client(gateway.endpoint)
    for size, body in BODIES.items():
        assert outcome(s3.get_object, Bucket="odd", Key=f"old-{size}") == DOWN
        assert outcome(s3.put_object, Bucket="odd", Key="refused", Body=body) == DOWN
        assert get(s3, f"old-{size}", "good") == body
        s3.put_object(Bucket="good", Key="k", Body=body)
    assert httpx.get(f"{gateway.endpoint}/-/health/ready").status_code == 200
    eventually(lambda: metric(gateway, "down_processes", "odd") >= 1)
    assert (metric(gateway, "up", "odd"), metric(gateway, "up", "good")) == (0, 1)
    assert (shown(gateway, "odd")["state"], shown(gateway, "odd")["store"]) == ("down", identity)
    assert "store odd: out of service" in told(gateway)
    return s3


def comes_back(s3: Any, gateway: Gateway) -> None:
    """The store is in service again, with all that it held."""
    for body in BODIES.values():
        eventually(
            lambda body=body: outcome(s3.put_object, Bucket="odd", Key="new", Body=body) == (200, ""), "recovery"
        )
    for size, body in BODIES.items():
        assert get(s3, f"old-{size}") == body
    assert outcome(s3.head_object, Bucket="odd", Key="refused")[0] == 404
    eventually(lambda: metric(gateway, "up", "odd") == 1)
    assert "store odd: in service again" in told(gateway)


@pytest.mark.parametrize("layout", ["objects", "tree"])
def test_one_hangs(tmp_path: Path, layout: str) -> None:
    need_fuse()
    for name in ("backing", "odd"):
        (tmp_path / name).mkdir()
    trees = ["odd"] if layout == "tree" else []
    with mounted(tmp_path / "backing", tmp_path / "odd", cached=False) as mount:
        gateway = two(tmp_path, tmp_path / "odd", driver="local" if trees else "fuse", trees=trees)
        with gateway:
            filled(gateway)
            identity = shown(gateway, "odd")["store"]
        hang = mount.fault("*", "hang", times=None)
        with gateway:
            is_down(gateway, identity)
        # of the first server processes are left that cannot die, and that is no server any more
        with gateway:
            s3 = is_down(gateway, identity)
            mount.clear(hang)
            comes_back(s3, gateway)


def test_one_is_away(tmp_path: Path) -> None:
    """An empty directory where the mount was is no empty store: nothing is ever made in it."""
    odd, away = tmp_path / "odd", tmp_path / "away"
    gateway = two(tmp_path, odd, driver="local")
    with gateway:
        filled(gateway)
        identity = shown(gateway, "odd")["store"]
    odd.rename(away)
    odd.mkdir()
    with gateway:
        s3 = is_down(gateway, identity)
        assert list(odd.iterdir()) == []
        odd.rmdir()
        away.rename(odd)
        comes_back(s3, gateway)


def test_another_store_in_its_place(tmp_path: Path) -> None:
    """Somebody has to look: no start, and nothing is written there."""
    odd, other = tmp_path / "odd", tmp_path / "other"
    gateway = stores(tmp_path, {name: (tmp_path / name, "local") for name in ("good", "odd", "other")})
    with gateway:
        filled(gateway)
    away = tmp_path / "away"
    odd.rename(away)
    other.rename(odd)
    away.rename(other)
    with pytest.raises(RuntimeError):
        gateway.start()
    assert "store odd: the index is of store" in told(gateway)


def test_a_mount_that_cannot_keep_its_promise(tmp_path: Path) -> None:
    need_fuse()
    for name in ("backing", "odd"):
        (tmp_path / name).mkdir()
    with mounted(tmp_path / "backing", tmp_path / "odd", cached=False) as mount:
        gateway = two(tmp_path, tmp_path / "odd")
        with gateway:
            filled(gateway)
        mount.fault("fsync", "EIO", times=None)
        with pytest.raises(RuntimeError):
            gateway.start()
        assert "unfit (durability)" in told(gateway)


def test_the_only_one_hangs(tmp_path: Path) -> None:
    """To wait for it is all that another start could do."""
    need_fuse()
    for name in ("backing", "odd"):
        (tmp_path / name).mkdir()
    with mounted(tmp_path / "backing", tmp_path / "odd", cached=False) as mount:
        gateway = stores(tmp_path, {"odd": (tmp_path / "odd", "fuse")})
        with gateway:
            s3 = client(gateway.endpoint)
            s3.create_bucket(Bucket="odd")
            s3.put_object(Bucket="odd", Key="k", Body=LARGE)
        hang = mount.fault("*", "hang", times=None)
        with gateway:
            s3 = client(gateway.endpoint)
            assert outcome(s3.get_object, Bucket="odd", Key="k") == DOWN
            assert httpx.get(f"{gateway.endpoint}/-/health/live").status_code == 200
            assert httpx.get(f"{gateway.endpoint}/-/health/ready").status_code == 503
            mount.clear(hang)
            eventually(lambda: outcome(s3.get_object, Bucket="odd", Key="k") == (200, ""), "recovery")
            assert get(s3, "k") == LARGE


def test_the_only_one_is_away(tmp_path: Path) -> None:
    odd, away = tmp_path / "odd", tmp_path / "away"
    gateway = stores(tmp_path, {"odd": (odd, "local")})
    with gateway:
        client(gateway.endpoint).create_bucket(Bucket="odd")
    odd.rename(away)
    with pytest.raises(RuntimeError):
        gateway.start()
    assert "store odd: there is no store: is the mount missing?" in told(gateway)
    assert not odd.exists()
