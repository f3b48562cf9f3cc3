"""Messages to a Kafka topic: accepted when all in-sync replicas have them.

The key is `BUCKETID/KEY`, so that messages of one object go to one partition.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError

from sluice_s3.app.index.notifications.rows import Message
from sluice_s3.app.jobs.notifications.targets.base import MessageRefused, Target
from sluice_s3.app.settings import NotifyTarget


class KafkaTarget:
    """See `Target`."""

    def __init__(self, settings: NotifyTarget) -> None:
        self._servers = settings.url.get_secret_value().removeprefix("kafka://")
        self._topic = settings.topic
        self._timeout = settings.timeout
        self._producer: Any = None
        self._connecting = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """See `Target.send`."""
        try:
            async with asyncio.timeout(self._timeout):
                producer = await self._connected()
                key = f"{message.bucket_id}/{message.key}".encode("utf-8", "surrogatepass")
                await producer.send_and_wait(self._topic, message.message.encode(), key=key)
        except MessageSizeTooLargeError:
            raise MessageRefused("it is too large") from None
        except BaseException:
            await self.close()  # its queued messages must not be sent after the next ones
            raise

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._producer is None:
                made = AIOKafkaProducer(
                    bootstrap_servers=self._servers, acks="all", request_timeout_ms=int(self._timeout * 1000)
                )
                try:
                    await made.start()
                except BaseException:
                    await made.stop()
                    raise
                self._producer = made
            return self._producer

    async def close(self) -> None:
        """See `Target.close`."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await producer.stop()


def open_target(settings: NotifyTarget) -> Target:
    """Open the topic of these settings."""
    return KafkaTarget(settings)
