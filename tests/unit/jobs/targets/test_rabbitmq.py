"""AMQP against RabbitMQ itself, which is killed under it: at least once, and those of a key in their order.

Skipped where it is not installed (Debian: `rabbitmq-server`), in CI too: it and Erlang are 130 MB.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aio_pika
import pytest

from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.jobs.notifications import sender
from sluice_s3.app.jobs.notifications.sender import NotificationSender
from sluice_s3.app.settings import NotifyTarget
from sluice_s3.loadtests.common.targets import free_port
from tests.support.environment import sized
from tests.support.waiting import eventually
from tests.unit.jobs.test_events import add, index

__all__ = ["index"]

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
MESSAGES = sized(3000, 30_000)
KEYS = 23
STARTS = 60.0
"""Seconds that a broker may take to start."""

pytestmark = pytest.mark.skipif(
    not SERVER.exists() or shutil.which("epmd") is None, reason="RabbitMQ is not installed (Debian: rabbitmq-server)"
)


class Broker:
    """A broker of our own, with its name server."""

    def __init__(self, directory: Path) -> None:
        self.port, names = free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}/"
        (directory / "plugins").write_text("[].\n")
        self._environment = {
            **os.environ,
            "HOME": str(directory),
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"sluice{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(directory / "mnesia"),
            "RABBITMQ_LOG_BASE": str(directory / "log"),
            "RABBITMQ_CONF_ENV_FILE": str(directory / "none"),
            "RABBITMQ_CONFIG_FILE": str(directory / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(directory / "plugins"),
        }
        self._names = subprocess.Popen(["epmd", "-port", str(names), "-address", "127.0.0.1"], env=self._environment)
        self._log = (directory / "output").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it is reached."""
        how: dict[str, Any] = {"stdout": self._log, "stderr": self._log, "start_new_session": True}
        self._process = subprocess.Popen([SERVER], env=self._environment, **how)
        eventually(self._answers, "RabbitMQ answers", STARTS)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, Path(self._log.name).read_text()
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as one:
                one.sendall(b"AMQP\0\0\x09\x01")
                return bool(one.recv(1))
        except OSError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._names.kill()
        self._names.wait()
        self._log.close()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    made = Broker(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


async def queue(url: str) -> tuple[Any, Any]:
    """A connection, and a queue that outlives the broker."""
    connection = await aio_pika.connect(url)
    channel = await connection.channel()
    await channel.set_qos(prefetch_count=1000)
    return connection, await channel.declare_queue("changes", durable=True)


async def received(url: str) -> list[str]:
    """Everything that is in the queue."""
    connection, waiting = await queue(url)
    found = []
    while (message := await waiting.get(fail=False)) is not None:
        found.append(message.body.decode())
        await message.ack()
    await connection.close()
    return found


async def test_at_least_once_and_in_order_though_the_broker_is_killed(
    index: SqliteIndex, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "LONGEST", 1.0)
    connection, _ = await queue(broker.url)
    await connection.close()
    sent = [(f"k{number % KEYS}", f"{number % KEYS}-{number:06}") for number in range(MESSAGES)]
    await add(index, "rabbit", *sent)
    settings = NotifyTarget.model_validate({"kind": "amqp", "url": broker.url, "topic": "changes", "timeout": 5})
    job = NotificationSender(index, {"rabbit": settings}, 1000)

    async def left() -> int:
        return sum(one.messages for one in await index.backlog())

    async def serve(until: int) -> None:
        async with asyncio.timeout(STARTS):
            while await left() > until:
                await job.run_once()
                await asyncio.sleep(0.01)

    kills = 0
    for part in (3, 2):  # with a third gone, and with half of it
        await serve(MESSAGES - MESSAGES // part)
        serving = asyncio.create_task(serve(0))
        await asyncio.sleep(0.02)
        broker.kill()
        kills += bool(await left())
        await asyncio.to_thread(broker.start)
        if part == 2:
            await serving
        else:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    await job.close()
    assert kills, "it was killed while there was something to send"
    assert await index.backlog() == []
    found = list(dict.fromkeys(await received(broker.url)))
    assert sorted(found) == sorted(text for _, text in sent)
    for key in range(KEYS):
        of_key = [text for text in found if text.startswith(f"{key}-")]
        assert of_key == sorted(of_key)


async def test_what_cannot_be_routed_waits(index: SqliteIndex, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "PAUSE", 0.0)
    await add(index, "rabbit", ("k", "one"))
    settings = NotifyTarget.model_validate({"kind": "amqp", "url": broker.url, "topic": "changes", "timeout": 5})
    job = NotificationSender(index, {"rabbit": settings}, 1000)
    await job.run_once()
    assert len(await index.backlog()) == 1, "nobody would have it"
    connection, _ = await queue(broker.url)
    await connection.close()
    while await index.backlog():
        await job.run_once()
    await job.close()
    assert await received(broker.url) == ["one"]
