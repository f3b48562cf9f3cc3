"""Who asks, when a proxy asks for somebody: `X-Forwarded-For`, believed only of proxies that the operator named."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from app.settings import Network

Address = IPv4Address | IPv6Address


class Proxies:
    """The networks whose word is taken."""

    def __init__(self, networks: tuple[Network, ...]) -> None:
        self._networks = networks
        self.trusts = lru_cache(4096)(self._trusts)

    def _trusts(self, address: str) -> bool:
        found = _address(address)
        return found is not None and any(found in network for network in self._networks)

    def client(self, proxy: str, forwarded: str) -> str:
        """The nearest address that is no trusted proxy's, read from the right: what stands left of it anybody can
        have written. `proxy` itself when there is none, or when the next one is no address."""
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
    """An address as proxies write it, perhaps with a port; one of IPv4 within IPv6 is the former."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
