"""Messages to an AMQP 0-9-1 exchange (RabbitMQ).

They are persistent and mandatory, and accepted when the broker confirms them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aio_pika

from sluice_s3.app.index.notifications.rows import Message
from sluice_s3.app.jobs.notifications.targets.base import Target
from sluice_s3.app.settings import NotifyTarget


class AmqpTarget:
    """See `Target`."""

    def __init__(self, settings: NotifyTarget) -> None:
        self._url = settings.url.get_secret_value()
        self._name = settings.exchange
        self._key = settings.topic
        self._timeout = settings.timeout
        self._connection: Any = None
        self._exchange: Any = None
        self._connecting = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """See `Target.send`."""
        try:
            async with asyncio.timeout(self._timeout):
                exchange = await self._connected()
                body = aio_pika.Message(
                    message.message.encode(),
                    content_type="application/json",
                    delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
                    message_id=str(message.id),
                )
                await exchange.publish(body, self._key, mandatory=True)
        except BaseException:
            await self.close()
            raise

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._connection is None or self._connection.is_closed:
                self._connection = await aio_pika.connect(self._url, timeout=self._timeout)
                channel = await self._connection.channel(publisher_confirms=True, on_return_raises=True)
                named = self._name
                self._exchange = await channel.get_exchange(named, ensure=False) if named else channel.default_exchange
            return self._exchange

    async def close(self) -> None:
        """See `Target.close`."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed:
            await connection.close()


def open_target(settings: NotifyTarget) -> Target:
    """Open the exchange of these settings."""
    return AmqpTarget(settings)
