"""Servers for the tests of programs that use S3: `Server`, and fixtures of pytest in `plugin`.

Imported as `sluice_s3.testing`. It imports nothing of the gateway, which runs in processes of its own.
"""

from __future__ import annotations

from sluice_s3.testing.endpoint import Endpoint
from sluice_s3.testing.server import Server, ServerFailed

__all__ = ["Endpoint", "Server", "ServerFailed"]
