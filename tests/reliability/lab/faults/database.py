"""Postgres that is killed, paused or failed over, and the network on the way to it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

from tests.reliability.lab.faults.registry import Scene, fault, on_postgres
from tests.reliability.lab.proxy import WAY_BACK, WAY_THERE
from tests.support.waiting import eventually


@fault("postgres-killed", on=on_postgres)
def postgres_killed(scene: Scene) -> Iterator[None]:
    """It crashes, and is started again."""
    yield
    assert scene.site.postgres is not None
    scene.site.postgres.stop("immediate")
    yield
    scene.site.postgres.start()


@fault("postgres-paused", on=on_postgres)
def postgres_paused(scene: Scene) -> Iterator[None]:
    """None of its processes runs for a while."""
    yield
    assert scene.site.postgres is not None
    stopped = scene.site.postgres.processes()
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    yield
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@fault("backend-killed", on=on_postgres)
def backend_killed(scene: Scene) -> Iterator[None]:
    """kill -9 of the process of one connection, which makes Postgres restart them all."""
    yield
    backends = scene.site.sql(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with suppress(ProcessLookupError):
        os.kill(int(scene.rng.choice(backends.split())), signal.SIGKILL)
    yield


@fault("failover", on=on_postgres)
def failover(scene: Scene) -> Iterator[None]:
    """The primary dies, and its synchronous standby takes its place at the same address."""
    site = scene.site
    assert site.postgres is not None
    standby = site.stack.enter_context(site.postgres.standby())
    yield
    site.postgres.stop("immediate")
    standby.promote()
    site.postgres = standby
    for proxy in site.proxies:
        proxy.hand_over(standby.socket)
    eventually(lambda: standby.sql("SELECT pg_is_in_recovery()") == "f", "the standby is the primary")
    yield


def _some(scene: Scene) -> list[int]:
    """The gateways whose way is disturbed: one of them or all."""
    return scene.rng.choice(([scene.rng.randrange(len(scene.site.proxies))], list(range(len(scene.site.proxies)))))


@fault("net-cut", on=on_postgres)
def net_cut(scene: Scene) -> Iterator[None]:
    """Connections end, and no new one comes about."""
    yield
    chosen = _some(scene)
    for number in chosen:
        scene.site.proxies[number].cut()
    scene.clients.wait(scene.rng.choice((0.0, 7.0)))
    yield
    for number in chosen:
        scene.site.proxies[number].mend()


@fault("net-silent", on=on_postgres)
def net_silent(scene: Scene) -> Iterator[None]:
    """Nothing arrives in either direction, nor any sign of that; later everything does."""
    yield from _silence(scene, WAY_THERE, WAY_BACK)


@fault("net-one-way", on=on_postgres)
def net_one_way(scene: Scene) -> Iterator[None]:
    """What one side says does not arrive; commits of which no answer comes among them."""
    yield from _silence(scene, scene.rng.choice((WAY_THERE, WAY_BACK)))


def _silence(scene: Scene, *ways: str) -> Iterator[None]:
    yield
    chosen = _some(scene)
    for number in chosen:
        scene.site.proxies[number].silence(*ways)
    scene.clients.wait(scene.rng.choice((1.0, 8.0)))
    yield
    for number in chosen:
        scene.site.proxies[number].mend()


@fault("net-slow", on=on_postgres)
def net_slow(scene: Scene) -> Iterator[None]:
    """Every packet takes longer."""
    yield
    delay = scene.rng.uniform(0.02, 0.5)
    for number in _some(scene):
        scene.site.proxies[number].delay = delay
    yield
    for proxy in scene.site.proxies:
        proxy.mend()
