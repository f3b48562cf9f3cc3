"""The driver of an unknown FUSE mount."""

from __future__ import annotations

from sluice_s3.storage_drivers.objects.caching_driver import CachingDriver
from sluice_s3.storage_drivers.objects.mount_profile import FUSE


class FuseDriver(CachingDriver):
    """A store on any FUSE mount: nothing on the event loop, sizes checked after close.

    With `read_back` everything written is read again and compared before it counts as durable.
    """

    mount_profile = FUSE
