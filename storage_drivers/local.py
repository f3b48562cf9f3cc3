"""The driver of a local disk."""

from __future__ import annotations

from storage_drivers.objects.driver import ObjectsDriver
from storage_drivers.objects.recipe import LOCAL


class LocalDriver(ObjectsDriver):
    """A store on a local disk: cached bytes on the event loop, files straight to sockets, holes in packs."""

    recipe = LOCAL
