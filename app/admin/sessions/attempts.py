"""Slows down guessing, in memory of a fixed size."""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

PLACES = 4096
"""Names share this many places. Who does not know the salt cannot aim at another's."""
MAX_KNOWN = 4096


class Attempts:
    """Allows a name `burst` attempts at once and one more every `interval` seconds (GCRA)."""

    def __init__(self, burst: int, interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._tolerance = (burst - 1) * interval
        self._interval = interval
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        self._due = [0.0] * PLACES

    def _place(self, name: str) -> int:
        return int.from_bytes(blake2b(name.encode("utf-8", "replace"), key=self._salt, digest_size=4).digest()) % PLACES

    def take(self, name: str) -> float:
        """Count an attempt. Returns 0, or the seconds to wait until the next one, which then was not counted."""
        place, now = self._place(name), self._clock()
        due = max(self._due[place], now)
        wait = due - self._tolerance - now
        if wait > 0:
            return wait
        self._due[place] = due + self._interval
        return 0.0

    def give_back(self, name: str) -> None:
        """Undo the count of an attempt that was no guess."""
        self._due[self._place(name)] -= self._interval


class Guesses:
    """Attempts to sign in, by client address and by access key.

    An address that has signed in with a key before is not held up by what others guess at that key.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._addresses = Attempts(10, 6.0, clock)
        self._keys = Attempts(20, 3.0, clock)
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    def take(self, address: str, access_key: str) -> float:
        """Count an attempt. Returns 0, or the seconds to wait."""
        network = network_of(address)
        wait = self._addresses.take(network)
        if wait == 0 and (network, access_key) not in self._known:
            wait = self._keys.take(access_key)
        return wait

    def succeed(self, address: str, access_key: str) -> None:
        """Note that the last attempt was right."""
        network = network_of(address)
        self._addresses.give_back(network)
        if (network, access_key) not in self._known:
            self._keys.give_back(access_key)
        self._known[network, access_key] = None
        self._known.move_to_end((network, access_key))
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)


def network_of(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
