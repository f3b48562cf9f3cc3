"""Whose request a proxy brings."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from sluice_s3.app.s3.wire.request import REQUEST
from sluice_s3.app.server.http.trusted_proxies import TrustedProxies
from tests.unit.server.tools import Recorder, serving

PROXIES = TrustedProxies((ip_network("10.0.0.0/8"), ip_network("fd00::/8")))


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("1.1.1.1, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9,10.2.2.2 , 10.3.3.3", "203.0.113.9"),
        ("10.9.9.9", "10.9.9.9"),
        ("203.0.113.9:4711", "203.0.113.9"),
        ("[2001:db8::1]:4711, fd00::2", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, unknown, 10.2.2.2", "10.2.2.2"),
        ("unknown", "10.0.0.1"),
        ("", "10.0.0.1"),
        (",,", "10.0.0.1"),
    ],
)
def test_the_nearest_that_is_no_proxy(forwarded: str, client: str) -> None:
    assert PROXIES.client("10.0.0.1", forwarded) == client


def test_who_is_trusted() -> None:
    assert PROXIES.trusts("10.255.0.1")
    assert PROXIES.trusts("::ffff:10.0.0.1")
    assert not PROXIES.trusts("11.0.0.1")
    assert not PROXIES.trusts("")
    assert not PROXIES.trusts("balancer")


@pytest.mark.parametrize(
    ("trusted", "client"), [("", "127.0.0.1"), ("192.0.2.0/24", "127.0.0.1"), ("127.0.0.0/8", "203.0.113.9")]
)
async def test_only_a_named_proxy_is_believed(trusted: str, client: str) -> None:
    recorder = Recorder()
    once = b"X-Forwarded-For: 203.0.113.9\r\n"
    async with serving(recorder, trusted_proxies=trusted) as site:
        connection = await site.connect()
        for fields in (once, b"X-Forwarded-For: 9.9.9.9\r\n" + once):
            await connection.ask(b"GET /b/k HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n")
    assert [scope[REQUEST].client for scope in recorder.scopes] == [client, client]
