"""Runs `parquet_child` for an object, a few at once."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from pathlib import Path

import orjson

from sluice_s3.app.admin.previews.models import ParquetHeadOut

MAX_RUNNING = 2
MAX_SECONDS = 20.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024
CHILD = "sluice_s3.app.admin.previews.parquet_child"


class NotReadable(Exception):
    """There is no preview; the message is for the user."""


class ParquetHeads:
    """Reads heads of Parquet objects in other processes."""

    def __init__(self) -> None:
        self._running = asyncio.Semaphore(MAX_RUNNING)

    @property
    def is_installed(self) -> bool:
        """Whether pyarrow is installed."""
        return find_spec("pyarrow") is not None

    @property
    def is_busy(self) -> bool:
        """Whether as many run as may."""
        return self._running.locked()

    async def read(self, url: str, certificate: Path | None) -> ParquetHeadOut:
        """Return the head of the object at a presigned URL. Raises NotReadable."""
        async with self._running:
            child = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                CHILD,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(MAX_SECONDS):
                    out, _ = await child.communicate(f"{url}\n{certificate or ''}\n".encode())
            except TimeoutError:
                raise NotReadable(f"The preview was not ready after {MAX_SECONDS:.0f} seconds.") from None
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
        if child.returncode or len(out) > MAX_ANSWER_BYTES:
            raise NotReadable("This file cannot be read: it may be damaged, or needs too much memory for a preview.")
        found = orjson.loads(out)
        if "error" in found:
            raise NotReadable(found["error"])
        return ParquetHeadOut(**found)
