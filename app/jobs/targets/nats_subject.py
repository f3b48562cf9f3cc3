"""Messages to a subject of NATS: taken when the server has them, or with `jetstream` a stream."""

from __future__ import annotations

import asyncio
from typing import Any

import nats

from app.feature_settings import NotifyTarget
from app.index.deliveries import Message
from app.jobs.targets.base import Target


class Subject:
    """See `Target`."""

    def __init__(self, settings: NotifyTarget) -> None:
        self._url = settings.url.get_secret_value()
        self._subject = settings.topic
        self._jetstream = settings.jetstream
        self._timeout = settings.timeout
        self._client: Any = None
        self._connecting = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """See `Target.send`."""
        async with asyncio.timeout(self._timeout):
            client = await self._connected()
            body = message.message.encode()
            if self._jetstream:
                # a stream takes each id once, so that one that is sent again is there no second time
                await client.jetstream().publish(self._subject, body, headers={"Nats-Msg-Id": str(message.id)})
            else:
                await client.publish(self._subject, body)
                await client.flush(max(1, int(self._timeout)))

    async def _connected(self) -> Any:
        async with self._connecting:
            if self._client is None or self._client.is_closed or not self._client.is_connected:
                await self.close()
                self._client = await nats.connect(
                    self._url, allow_reconnect=False, connect_timeout=self._timeout, error_cb=_nothing
                )
            return self._client

    async def close(self) -> None:
        """See `Target.close`."""
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            await client.close()


async def _nothing(_: Exception) -> None:
    """Told of errors that `send` raises too."""


def open_target(settings: NotifyTarget) -> Target:
    """The subject of these settings."""
    return Subject(settings)
