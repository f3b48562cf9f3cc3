"""The client's address behind proxies: `X-Forwarded-For`, trusted only from the operator's proxies."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from sluice_s3.app.settings import Network

Address = IPv4Address | IPv6Address


class TrustedProxies:
    """The networks whose `X-Forwarded-For` is trusted."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(4096)(self._trusts)

    def _trusts(self, address: str) -> bool:
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def client(self, proxy: str, forwarded: str) -> str:
        """Return the nearest address that is not a trusted proxy's, read from the right.

        Anybody can write what stands left of it. Returns `proxy` itself when there is none, or when the next entry is
        no address.
        """
        nearest = proxy
        for entry in reversed(forwarded.split(",")):
            found = _address(entry.strip())
            if found is None:
                break
            nearest = str(found)
            if not self.trusts(nearest):
                break
        return nearest


def _address(text: str) -> Address | None:
    """Parse an address as proxies write it, perhaps with a port; IPv4-mapped IPv6 becomes IPv4."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
