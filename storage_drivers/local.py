"""The driver of a local disk."""

from __future__ import annotations

from sluice_s3.storage_drivers.objects.driver import ObjectsDriver
from sluice_s3.storage_drivers.objects.mount_profile import LOCAL


class LocalDriver(ObjectsDriver):
    """A store on a local disk.

    It reads cached bytes on the event loop, sends files straight to sockets, and punches holes in packs.
    """

    mount_profile = LOCAL
