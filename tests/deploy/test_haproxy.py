"""The balancer's file, taken by a real HAProxy: streaming both ways, what is tried again, what is left as it is."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.common.targets import free_port
from tests.support.environment import ROOT, lack
from tests.support.gateway import Gateway, client
from tests.support.raw_http import Client, Request, make_request
from tests.support.waiting import eventually, is_listening

FILE = ROOT / "deploy" / "haproxy" / "haproxy.cfg"
HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
"""Debian puts it where only root looks."""
MIB = 1 << 20


class Balancer:
    """HAProxy with the file of the stack; only addresses are others."""

    def __init__(self, directory: Path, *servers: int) -> None:
        self.port = free_port()
        text = FILE.read_text()
        lines = "".join(f"    server gateway-{number} 127.0.0.1:{port}\n" for number, port in enumerate(servers))
        text = re.sub(r"(?m)(^    server .*\n)+", lines, text)
        text = text.replace("resolvers containers init-addr", "init-addr")
        for name, port in (("bind :9000", self.port), ("bind :9001", free_port()), ("bind :8404", free_port())):
            assert name in text
            text = text.replace(name, f"bind 127.0.0.1:{port}")
        path = directory / "haproxy.cfg"
        path.write_text(text)
        self.process = subprocess.Popen(
            [str(HAPROXY), "-db", "-f", path], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def wait(self) -> None:
        """Until it answers, and so has looked at its servers once."""

        def answers() -> bool:
            assert self.process.poll() is None, "HAProxy ended"
            return is_listening(self.port)

        eventually(answers, "HAProxy listens", 30)

    def __enter__(self) -> Balancer:
        self.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture(autouse=True)
def _installed() -> None:
    if HAPROXY is None:
        lack("not installed: haproxy")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    env = {
        "SLUICE_DEFAULT_BUCKETS": "first",
        "SLUICE_TRUSTED_PROXIES": "127.0.0.1",
        "SLUICE_ACCESS_LOG": "true",
        "SLUICE_DOMAIN": "s3.test",
        "SLUICE_DURABILITY": "relaxed",
    }
    with Gateway(tmp_path_factory.mktemp("balanced") / "data", workers=1, env=env) as running:
        yield running


@pytest.fixture
def balancer(gateway: Gateway, tmp_path: Path) -> Iterator[Balancer]:
    with Balancer(tmp_path, gateway.port) as running:
        yield running


def test_the_file_as_it_is() -> None:
    checked = subprocess.run([str(HAPROXY), "-c", "-f", FILE], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
    # the names of the stack are not known here; they are looked up while it runs
    warnings = [line for line in checked.stderr.splitlines() if "[WARNING]" in line]
    assert [line for line in warnings if "could not resolve address 'gateway-" not in line] == []


def test_the_file_of_the_guide(tmp_path: Path) -> None:
    """What the guide gives is valid as it stands, but for the certificate."""
    guide = (ROOT / "docs/guides/tls-behind-a-proxy.md").read_text()
    text = guide.partition("```haproxy\n")[2].partition("```")[0]
    pem = tmp_path / "s3.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout - -out -"
    pem.write_bytes(subprocess.run(make.split(), capture_output=True, check=True).stdout)
    assert text.count("/etc/haproxy/s3.pem") == 2
    (tmp_path / "haproxy.cfg").write_text(text.replace("/etc/haproxy/s3.pem", str(pem)))
    checked = subprocess.run([str(HAPROXY), "-c", "-f", tmp_path / "haproxy.cfg"], capture_output=True, text=True)
    assert (checked.returncode, "[WARNING]" in checked.stderr) == (0, False), checked.stderr


def test_signatures_hold(balancer: Balancer) -> None:
    s3 = client(balancer.endpoint)
    key = "a//b/../c d/ü+%2F~?"
    s3.put_object(Bucket="first", Key=key, Body=b"x" * 100, Metadata={"name": "a  b"})
    assert s3.get_object(Bucket="first", Key=key)["Metadata"] == {"name": "a  b"}
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "first", "Key": key})
    with Client(balancer.endpoint) as asking:
        answer = asking.ask(make_request("GET", url))
    assert (answer.status, answer.body) == (200, b"x" * 100)


def test_large_bodies_both_ways(balancer: Balancer) -> None:
    s3 = client(balancer.endpoint)
    body = os.urandom(20 * MIB)
    s3.put_object(Bucket="first", Key="large", Body=body)  # with Expect: 100-continue, as botocore does
    assert s3.get_object(Bucket="first", Key="large")["Body"].read() == body


def test_a_head_as_large_as_the_gateway_takes(balancer: Balancer) -> None:
    fields = tuple((f"x-other-{number}", "v" * 300) for number in range(190))
    with Client(balancer.endpoint) as asking:
        answer = asking.ask(Request("GET", "/first/k", headers=fields))
    assert (answer.status, answer.code) == (403, "AccessDenied")


def test_a_body_is_passed_on_while_it_comes(balancer: Balancer, gateway: Gateway) -> None:
    """The gateway refuses for what it has read of the head, long before the body's end: nothing was collected."""
    with Client(balancer.endpoint) as asking:
        assert asking.ask(Request("PUT", "/first/k", body=bytes(100_000), length=5_000_000)).status == 403


def test_a_body_is_passed_back_while_it_comes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with Balancer(tmp_path, port) as balancer, Client(balancer.endpoint) as asking:
            asking.begin(Request("GET", "/k"))
            answering = _next(listener, b"GET /k ")
            answering.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nfirst bytes")
            assert asking.connection.head().status == 200
            assert asking.connection.take(11) == b"first bytes"  # all that there is; the rest is never sent
            answering.close()


def _next(listener: socket.socket, begin: bytes) -> socket.socket:
    """The next request that is no health check; those are answered."""
    listener.settimeout(30)
    while True:
        connection, _ = listener.accept()
        head = connection.recv(65536)
        if head.startswith(begin):
            return connection
        if head:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.close()


def test_who_asks_is_told_and_cannot_be_made_up(balancer: Balancer, gateway: Gateway) -> None:
    assert gateway.process is not None
    assert gateway.process.stdout is not None
    with Client(balancer.endpoint, source=("127.0.0.2", 0)) as asking:
        asking.ask(Request("GET", "/first/who-asks", headers=(("X-Forwarded-For", "203.0.113.1"),)))
    for line in gateway.process.stdout:
        entry = json.loads(line) if line.startswith("{") else {}
        if entry.get("key") == "who-asks":
            assert entry["client"] == "127.0.0.2"
            return


def test_a_gateway_that_is_not_there_takes_no_request_with_it(gateway: Gateway, tmp_path: Path) -> None:
    """From the first request on, before any health check found it out."""
    with Balancer(tmp_path, free_port(), gateway.port, free_port()) as balancer:
        url = client(balancer.endpoint).generate_presigned_url("put_object", Params={"Bucket": "first", "Key": "k"})
        for _ in range(30):
            with Client(balancer.endpoint) as asking:
                assert asking.ask(make_request("PUT", url, body=b"x" * 1000)).status == 200


class Dying:
    """Takes requests and ends without an answer; healthy to whoever asks for that."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = 0

    def serve(self, begin: bytes) -> None:
        while True:
            try:
                connection = _next(self.listener, begin)
            except OSError:
                return
            self.seen += 1
            connection.close()


@pytest.mark.parametrize(("method", "sent"), [("GET", 4), ("HEAD", 4), ("PUT", 1), ("POST", 1), ("DELETE", 1)])
def test_only_reads_are_sent_again(tmp_path: Path, method: str, sent: int) -> None:
    import threading

    dying = Dying()
    thread = threading.Thread(target=dying.serve, args=(method.encode() + b" /b/k ",))
    thread.start()
    try:
        with Balancer(tmp_path, dying.port) as balancer, Client(balancer.endpoint) as asking:
            answer = asking.ask(Request(method, "/b/k", body=b"body" if method in ("PUT", "POST") else b""))
    finally:
        dying.listener.shutdown(socket.SHUT_RDWR)
        dying.listener.close()
        thread.join()
    assert (answer.status, dying.seen) == (502, sent)
    assert answer.headers["retry-after"] == "1"
    assert method == "HEAD" or answer.code == "ServiceUnavailable"


def test_no_gateway_is_an_answer_that_clients_try_again(tmp_path: Path) -> None:
    with Balancer(tmp_path, free_port()) as balancer, Client(balancer.endpoint) as asking:
        answer = asking.ask(Request("PUT", "/b/k", body=b"body"))
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    assert answer.code == "ServiceUnavailable"


def test_a_graceful_stop_under_load_loses_no_request(tmp_path: Path) -> None:
    """Of two gateways one is told to stop. Each has a store of its own, so only what both refuse is asked."""
    import threading

    env = {"SLUICE_STOP_DELAY": "2"}
    leaving, staying = (Gateway(tmp_path / name, workers=1, env=env) for name in ("one", "two"))
    failed: list[Any] = []
    done = threading.Event()

    def ask(endpoint: str) -> None:
        # a change, so that nothing is sent again: refused by the gateway, for it is not signed
        change = Request("PUT", "/first/k", body=b"x")
        while not done.is_set():
            with Client(endpoint) as asking:
                try:
                    statuses = [asking.ask(change).status for _ in range(10)]
                    failed.extend(status for status in statuses if status >= 500)
                except OSError as error:
                    failed.append(error)

    with leaving.start(), staying.start(), Balancer(tmp_path, leaving.port, staying.port) as balancer:
        threads = [threading.Thread(target=ask, args=(balancer.endpoint,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(1)
        assert leaving.stop(30) == 0
        time.sleep(0.5)
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
