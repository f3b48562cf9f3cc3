"""What a mount is, and is mounted with, that makes a store work worse than promised and that no trial shows."""

from __future__ import annotations

from sluice_s3.storage_drivers.mountinfo import Mount

_EITHER = {
    "soft": "a server that does not answer for a while makes reads and writes fail (503); mount with hard",
    "softerr": "a server that does not answer for a while makes reads and writes fail (503); mount with hard",
    "nocto": "what another gateway or program wrote may be seen late, or not at all; several gateways need cto",
    "nosharecache": "what another mount of the export on this machine wrote may stay unseen; share one mount",
}
"""By the option's name, as the kernel's table of mounts has it (nfs(5))."""
_LOCKS = {
    "nolock": "locks of other machines are not seen, so that rebuild does not keep their gateways out; mount with lock",
    "local_lock=all": "locks of other machines are not seen, so that rebuild does not keep their gateways out",
    "local_lock=flock": "locks of other machines are not seen, so that rebuild does not keep their gateways out",
}


def warnings(mount: Mount) -> list[str]:
    """Return what is wrong with a mount's options, each as "option: consequence".

    Only NFS has such options. What the server does (an export that is `async`) is not among them.
    """
    if not mount.kind.startswith("nfs"):
        return []
    options = mount.settings.split(",")
    found = [f"{name}: {why}" for name, why in _EITHER.items() if name in options]
    return found + [f"{name}: {why}" for name, why in _LOCKS.items() if name in options][:1]


def misfit(mount: Mount, *, patient: bool) -> str:
    """Return what a driver that is not `patient` with stale caches does wrong on this mount; empty if nothing."""
    if patient or mount.driver == "local" or mount.kind == "unknown":
        return ""
    return f"driver local on {mount.kind}: what the mount shows late counts as damage; set the driver {mount.driver}"
