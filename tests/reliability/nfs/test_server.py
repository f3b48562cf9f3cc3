"""The NFS server loses its power, freezes or cannot be reached, under load: what was acknowledged is there."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.reliability.crash.ledger import Ledger, described
from tests.reliability.crash.workload import Clients
from tests.reliability.nfs.mounts import forget, gateway_on, mounted, wait_for_server
from tests.reliability.nfs.power import ask, restart
from tests.support.environment import sized
from tests.support.gateway import Gateway, client
from tests.support.waiting import eventually

pytestmark = pytest.mark.crash

BUCKET = "nfs-bucket"
CUTS = sized(ci=2, soak=10)
OPERATIONS = sized(ci=40, soak=300)
ROUTE, SERVER = ("ip", "route"), "10.99.0.1/32"
OUTAGE_SECONDS = 15.0
"""Longer than the time after which a store counts as hanging."""


def settled(gateway: Gateway, ledger: Ledger) -> None:
    """Check what a gateway holds, as the server has it."""
    s3 = client(gateway.endpoint)
    eventually(lambda: not refused(s3, ledger.bucket), "the store is in service")
    forget()
    wrong = ledger.check(s3).wrong
    log = gateway.data.with_suffix(".log").read_text()
    assert wrong == [], "\n".join([*wrong, log[-8000:]])
    report = gateway.run("fsck", "--json", check=False)
    assert report.returncode == 0, report.stdout + report.stderr


def goes_on(clients: Clients, ledger: Ledger) -> None:
    """Operations are acknowledged again."""
    target = ledger.acknowledged + OPERATIONS
    eventually(lambda: ledger.acknowledged >= target, "acknowledged operations after the outage")
    assert clients.faults == []


@pytest.mark.parametrize("version", ["4.2", "3"])
def test_a_power_cut_of_the_server_loses_nothing(tmp_path: Path, version: str) -> None:
    """The gateway goes on through it: its mount is `hard`, and every answer that a client got counts."""
    ledger = Ledger("power")
    options = f"vers={version},hard"
    with mounted(tmp_path / "mount", options=options) as mount, gateway_on(mount, tmp_path) as gateway:
        client(gateway.endpoint).create_bucket(Bucket=ledger.bucket)
        processes = gateway.children()
        for cut in range(CUTS):
            with Clients(ledger, gateway.endpoint, threads=4, seed=cut, persist=True) as clients:
                clients.wait_for(ledger.acknowledged + OPERATIONS)
                restart()
                goes_on(clients, ledger)
            assert clients.faults == []
            settled(gateway, ledger)
        assert gateway.children() == processes
        gateway.kill()
        gateway.start()
        settled(gateway, ledger)
    print(f"{version}: {CUTS} cuts, {ledger.acknowledged} acknowledged operations, none lost")


@pytest.mark.parametrize("export", ["/sync", "/async"])
def test_only_an_async_export_loses(tmp_path: Path, export: str) -> None:
    """A server that answers before its disk has it loses what Sluice acknowledged: readers get 503, never other bytes.

    Nothing that a client can ask the server for tells the two apart.
    """
    bodies = {f"key-{number}": bytes([number]) * (100 + number * 3000) for number in range(100)}
    with mounted(tmp_path / "mount", export) as mount, gateway_on(mount, tmp_path) as gateway:
        s3 = client(gateway.endpoint, max_pool_connections=4)
        s3.create_bucket(Bucket=BUCKET)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda key: s3.put_object(Bucket=BUCKET, Key=key, Body=bodies[key]), bodies))
        ask("cut")
        gateway.kill()  # its memory must not answer for the server
        ask("boot")
        wait_for_server(mount)
        forget()
        try:
            gateway.start()
        except RuntimeError:
            if export == "/sync":
                raise
            lost = set(bodies)
        else:
            lost = {key for key, body in bodies.items() if not whole(client(gateway.endpoint), key, body)}
    print(f"{export}: {len(lost)} of {len(bodies)} acknowledged objects lost")
    assert bool(lost) == (export == "/async")


def whole(s3: Any, key: str, body: bytes) -> bool:
    """Whether an object is there; else its reader must be told of damage."""
    try:
        found = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    except ClientError as error:
        if error.response["Error"]["Code"] != "ServiceUnavailable":
            raise
        return False
    assert described(found) == described(body)
    return True


@pytest.mark.parametrize("outage", ["frozen", "unreachable"])
@pytest.mark.parametrize("mounting", ["hard", "soft,timeo=20,retrans=1"])
def test_an_outage_of_the_server(tmp_path: Path, outage: str, mounting: str) -> None:
    """Clients get 503 meanwhile, and service goes on by itself; `soft` makes errors of it, but loses nothing either."""
    ledger = Ledger("outage")
    options = f"vers=4.2,{mounting}"
    with (
        mounted(tmp_path / "mount", options=options) as mount,
        gateway_on(mount, tmp_path, SLUICE_HANG_TIMEOUT="5") as gateway,
    ):
        s3 = client(gateway.endpoint)
        s3.create_bucket(Bucket=ledger.bucket)
        with Clients(ledger, gateway.endpoint, threads=4, seed=1, persist=True) as clients:
            clients.wait_for(OPERATIONS)
            begin(outage)
            try:
                eventually(lambda: refused(s3, ledger.bucket), "503", 60)
                clients.wait(OUTAGE_SECONDS)
            finally:
                end(outage)
            goes_on(clients, ledger)
        assert clients.faults == []
        settled(gateway, ledger)


def refused(s3: Any, bucket: str) -> bool:
    try:
        s3.put_object(Bucket=bucket, Key="refused", Body=b"x")
    except ClientError as error:
        return error.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    s3.delete_object(Bucket=bucket, Key="refused")
    return False


def begin(outage: str) -> None:
    if outage == "frozen":
        ask("freeze")
    else:
        subprocess.run([*ROUTE, "add", "blackhole", SERVER], check=True)


def end(outage: str) -> None:
    if outage == "frozen":
        ask("thaw")
    else:
        subprocess.run([*ROUTE, "delete", "blackhole", SERVER], check=True)
