"""The driver of EFS, or any other NFS."""

from __future__ import annotations

from storage_drivers.objects.driver import ObjectsDriver
from storage_drivers.objects.recipe import EFS


class EfsDriver(ObjectsDriver):
    """A store on NFS: nothing on the event loop, large bodies to several files at once, patience with its caches."""

    recipe = EFS
