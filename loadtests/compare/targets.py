"""What scenarios run against: a fresh gateway on a store, an endpoint, or plain files."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sluice_s3.loadtests.clients.credentials import Credentials
from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.s3 import S3Client
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys, Running
from sluice_s3.loadtests.common.targets import Target as Launched
from sluice_s3.loadtests.compare.plan import Plan, PlanError
from sluice_s3.loadtests.compare.stores import NAME, Store, parse_store, provision
from sluice_s3.storage_drivers.mountinfo import mount_of

SETTINGS = {"SLUICE_SERVER_TIMING": "true", "SLUICE_ACCESS_LOG": "false"}
"""Gateway settings: phases for the report, and no log."""
MARK = "SLUICE_BENCH_RUN"
"""Variable by which who started a run finds all its processes."""
WARM_UPS = 50


@dataclass(frozen=True)
class Target:
    """One line of the report. `kind` is `gateway`, `endpoint` or `direct`."""

    name: str
    kind: str
    store: Store | None = None
    url: str = ""
    synced: bool = True


@dataclass(frozen=True)
class RunningTarget:
    """A target that is ready. Process ids are 0 for processes that we did not start."""

    host: str = ""
    direct: str = ""
    keys: Keys = field(default_factory=lambda: Keys("", ""))
    path: Path | None = None
    driver: str = ""
    gateway_pid: int = 0
    mount_pid: int = 0
    server: str = ""
    backing: Path | None = None
    """The directory below a temporary mount."""

    def sweep(self, bucket: str) -> str:
        """Remove what a cell left at an endpoint or as plain files.

        Returns why it cannot, or an empty string.
        """
        if self.direct:
            shutil.rmtree(Path(self.direct) / bucket, ignore_errors=True)
            return ""
        if self.gateway_pid:
            return ""  # its whole directory is removed
        objects = S3Client(_signed(self.host, self.keys), bucket)
        try:
            return objects.sweep()
        finally:
            objects.close()


def targets_of(plan: Plan) -> list[Target]:
    """Return targets in the order of their options, plain files beside their store.

    Raises PlanError.
    """
    found = []
    for text in plan.stores:
        store = parse_store(text)
        found.append(Target(store.name, "gateway", store))
        if plan.direct:
            found.append(Target(f"{store.name}-direct", "direct", store))
        if plan.direct_unsynced:
            found.append(Target(f"{store.name}-direct-unsynced", "direct", store, synced=False))
    for text in plan.endpoints:
        name, equals, url = text.partition("=")
        if not equals or not NAME.fullmatch(name):
            raise PlanError(f"{text!r} is not NAME=http://HOST:PORT")
        try:
            Endpoint(url, "", "")
        except ValueError as error:
            raise PlanError(f"endpoint {name}: {error}") from error
        found.append(Target(name, "endpoint", url=url.rstrip("/")))
    names = [one.name for one in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise PlanError(f"two targets are called {', '.join(sorted(twice))}")
    if not found:
        raise PlanError("there is nothing to compare: give --store or --endpoint")
    return found


@contextmanager
def start_target(target: Target, plan: Plan, keys: Keys, parent: Path, log: Path) -> Iterator[RunningTarget]:
    """Start the target until the end of the block.

    Temporary files are in `parent`. Raises S3CallError, MountFailed, OSError.
    """
    if target.kind == "endpoint":
        yield _endpoint(target, keys)
        return
    assert target.store is not None
    with provision(target.store, parent) as place:
        if target.kind == "direct":
            yield RunningTarget(direct=str(place.path), path=place.path, mount_pid=place.pid, backing=place.backing)
            return
        local = place.driver == mount_of(place.path).driver == "local"  # SQLite's index may lie there
        own = Keys(secrets.token_hex(10), secrets.token_hex(20), plan.region)
        launched = Launched(
            target.name, command=command(plan, local), durability=plan.durability, driver="" if local else place.driver
        )
        running = Running(
            launched, own, place.path if local else parent, None, None if local else place.path,
            environment=without_settings(os.environ),
        )  # fmt: skip
        try:
            with running:
                host = f"http://{running.address[0]}:{running.address[1]}"
                _warm(host, own)
                yield RunningTarget(
                    host, keys=own, path=place.path, driver=place.driver, gateway_pid=running.pid or 0,
                    mount_pid=place.pid, server=running.server, backing=place.backing,
                )  # fmt: skip
                log.write_text(running.printed())
        except S3CallError as error:
            log.write_text(str(error))
            raise


def without_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without a gateway's settings.

    Where `sluice bench` is called beside a gateway, `SLUICE_INDEX` and the like are those of its data. A mark stays.
    """
    return {
        name: value for name, value in environment.items() if name == MARK or not name.startswith(("SLUICE_", "MINIO_"))
    }


def command(plan: Plan, local: bool) -> str:
    """Return the gateway's command.

    A setting names the data directory of a store or mount that is not local.
    """
    words = ["env", *(f"{name}={value}" for name, value in SETTINGS.items())]
    words += [sys.executable, "-m", "sluice_s3.app.cli", "serve", "--host", "127.0.0.1", "--port", "{port}"]
    words += ["--workers", str(plan.workers), "--admin-port", "-1", *(("--data", "{data}") if local else ())]
    return shlex.join(words).replace("'{port}'", "{port}").replace("'{data}'", "{data}")


def _endpoint(target: Target, keys: Keys) -> RunningTarget:
    """Return an endpoint that accepts our keys. Raises S3CallError."""
    if not keys.access_key or not keys.secret_key:
        raise S3CallError(f"{target.name}: its keys are taken from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    bucket = f"sluice-bench-check-{secrets.token_hex(4)}"
    objects = S3Client(_signed(target.url, keys, timeout=20), bucket)
    try:
        problem = objects.prepare() or objects.sweep()
    finally:
        objects.close()
    if problem:
        raise S3CallError(f"{target.name} ({target.url}): {problem}")
    return RunningTarget(target.url, keys=keys)


def _signed(url: str, keys: Keys, timeout: float = 60.0) -> Endpoint:
    """Return an endpoint whose requests are signed by keys, temporary ones with their token."""
    given = Credentials(keys.access_key, keys.secret_key, keys.session_token)
    return Endpoint(url, keys.access_key, keys.secret_key, keys.region, timeout, lambda: given)


def _warm(host: str, keys: Keys) -> None:
    """Have a fresh gateway do every operation a few times. Raises S3CallError."""
    objects = S3Client(_signed(host, keys), "warm-up")
    problem = objects.prepare()
    for number in range(WARM_UPS):
        for done in (
            objects.put(f"{number}", 4096),
            objects.get(f"{number}", 4096),
            objects.stat(f"{number}"),
            objects.delete(f"{number}"),
        ):
            problem = problem or done.error
    problem = objects.sweep() or problem
    objects.close()
    if problem:
        raise S3CallError(f"the gateway does not work: {problem}")


def describe(target: Target, found: Mapping[str, object]) -> dict[str, object]:
    """Describe a target for `meta.json`."""
    store = target.store
    return {
        "name": target.name,
        "kind": target.kind,
        "url": target.url,
        "path": str(store.path or "") if store else "",
        "profile": "" if store is None or store.kind != "mount" else store.profile,
        "personality": store.personality if store else "",
        "slower": store.slower if store else 1.0,
        "store": store.kind if store else "",
        "driver": store.driver if store and target.kind == "gateway" else "",
        "synced": target.synced if target.kind == "direct" else None,
        "settings": SETTINGS if target.kind == "gateway" else {},
        "error": "",
        **found,
    }


def locust_arguments(target: Target, there: RunningTarget, bucket: str) -> Sequence[str]:
    """Return Locust's arguments that locate the objects.

    Keys go by the environment.
    """
    words = ["--bucket", bucket, "--region", there.keys.region]
    if there.direct:
        return [*words, "--direct", there.direct, *(() if target.synced else ("--unsynced",))]
    return [*words, "--host", there.host]
