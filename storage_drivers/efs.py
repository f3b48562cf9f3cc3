"""The driver of EFS, or any other NFS."""

from __future__ import annotations

from storage_drivers.objects.recipe import EFS
from storage_drivers.objects.remembering import RememberingDriver


class EfsDriver(RememberingDriver):
    """A store on NFS: nothing on the event loop, large bodies to several files at once, patience with its caches."""

    recipe = EFS
