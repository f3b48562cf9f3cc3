"""Messages to a NATS subject.

They are accepted when the server, or with `jetstream` a stream, has them.
"""

from __future__ import annotations

import asyncio
from typing import Any

import nats
from nats.errors import MaxPayloadError

from sluice_s3.app.index.notifications.rows import Message
from sluice_s3.app.jobs.notifications.targets.base import MessageRefused, Target
from sluice_s3.app.settings import NotifyTarget


class NatsTarget:
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
            try:
                await self._publish(client, message.id, body)
            except MaxPayloadError:
                raise MessageRefused("it is too large") from None

    async def _publish(self, client: Any, number: int, body: bytes) -> None:
        if self._jetstream:
            # A stream stores each id once, so a repeated message is no duplicate.
            await client.jetstream().publish(self._subject, body, headers={"Nats-Msg-Id": str(number)})
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
    """Ignore errors that `send` raises too."""


def open_target(settings: NotifyTarget) -> Target:
    """Open the subject of these settings."""
    return NatsTarget(settings)
