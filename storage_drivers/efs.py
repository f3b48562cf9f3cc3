"""The driver of EFS and other NFS."""

from __future__ import annotations

from sluice_s3.storage_drivers.objects.caching_driver import CachingDriver
from sluice_s3.storage_drivers.objects.mount_profile import EFS


class EfsDriver(CachingDriver):
    """A store on NFS.

    It does nothing on the event loop, stripes large bodies, and allows for stale caches of the client.
    """

    mount_profile = EFS
