"""Limits of requests a second: of an account, and of an address without one."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network
from typing import Protocol

from sluice_s3.app.s3.errors import SlowDown
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.settings import Settings


class Rates(Protocol):
    """The rates of callers, shared by the processes of a server."""

    def admit(self, caller: str, per_second: int) -> bool:
        """Count a request; return False, and count nothing, when the caller is over its rate."""
        ...


def _network(client: str) -> str:
    """Return the address, of version 6 its /64: one host has all addresses of that."""
    if ":" not in client:
        return client
    try:
        address = IPv6Address(client.partition("%")[0])
    except ValueError:
        return client
    return str(address.ipv4_mapped or IPv6Network((int(address) >> 64 << 64, 64)))


class RequestRateLimits:
    """Refuses requests of callers that send too many."""

    def __init__(self, settings: Settings, rates: Rates) -> None:
        self._of_account = settings.requests_per_second
        self._of_address = settings.anonymous_requests_per_second
        self._rates = rates

    def check(self, request: S3Request) -> None:
        """Count a request whose signature is verified, or that has none. Raises SlowDown.

        AWS answers so above its rates
        (https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html).
        """
        if request.account_id is not None:
            caller, per_second = f"account {request.account_id}", self._of_account
        else:
            caller, per_second = f"address {_network(request.client)}", self._of_address
        if per_second and not self._rates.admit(caller, per_second):
            raise SlowDown
