"""The driver of a mount that nothing is known of."""

from __future__ import annotations

from storage_drivers.objects.recipe import FUSE
from storage_drivers.objects.remembering import RememberingDriver


class FuseDriver(RememberingDriver):
    """A store on any FUSE mount: nothing on the event loop, sizes looked at after close.

    With `read_back` all that was written is read again and compared before it counts as durable.
    """

    recipe = FUSE
