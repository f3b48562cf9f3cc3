"""The launcher: start, replace, restart, stop; no connection lost on the way."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.server.processes import deaths
from tests.support.environment import sized
from tests.support.raw_http import PATIENCE, Request
from tests.support.waiting import eventually
from tests.unit.server.launched import Launched, alive, children, command_of

pytestmark = pytest.mark.slow

METRICS = "tests.unit.server.apps:create_metrics"


def test_starts_serves_and_stops(launch: Any) -> None:
    server = launch(admin=METRICS, admin_port=0).ready().admin()
    pids = server.pids()
    assert len(pids) == 2, "connections spread over the slots"
    assert {os.sched_getscheduler(pid) for pid in pids} == {os.SCHED_BATCH}
    assert os.sched_getscheduler(server.process.pid) == os.SCHED_OTHER
    assert b"sluice_connections" in Launched.get(_on(server, server.admin_port), "/metrics")
    server.signal(signal.SIGTERM)
    assert server.end() == 0
    assert not any(alive(pid) for pid in pids)
    assert (server.data / "calls").read_text() == "called\n"


def _on(server: Launched, port: int) -> Launched:
    other = object.__new__(Launched)
    other.host, other.port = server.host, port
    return other


def test_a_graceful_stop_ends_what_runs(launch: Any) -> None:
    server = launch(workers=1).ready()
    idle, busy = server.connect(), server.connect()
    server.get("/", idle)
    busy.begin(Request("GET", "/sleep?0.7"))
    time.sleep(0.2)
    server.signal(signal.SIGINT)
    answer = busy.answer()
    assert (answer.body, answer.closes) == (b"slept", True)
    assert server.end() == 0
    assert idle.is_open
    assert idle.connection.socket.recv(1) == b""


def test_who_comes_while_a_server_stops_is_refused_at_once(launch: Any) -> None:
    """And does not wait in the queue of a socket that nobody serves any more."""
    server = launch(workers=2).ready()
    busy = server.connect()
    busy.begin(Request("GET", "/sleep?1.5"))
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    eventually(lambda: _refused(server.port))
    assert busy.answer().body == b"slept"
    assert server.end() == 0


def _refused(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), PATIENCE):
            return False
    except ConnectionRefusedError:
        return True


def test_a_request_longer_than_the_graceful_time_is_cut_off(launch: Any) -> None:
    server = launch(workers=1, graceful_timeout=0.3).ready()
    busy = server.connect()
    busy.begin(Request("GET", "/sleep?1000"))
    time.sleep(0.2)
    server.signal(signal.SIGTERM)
    with pytest.raises(ConnectionError):
        busy.answer()
    assert server.end() == 0


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        ("create_broken", "RuntimeError: this application cannot start"),
        ("create_failing", "OSError: the index is on the moon"),
        ("missing", "AttributeError: module 'tests.unit.server.apps' has no attribute 'missing'"),
    ],
)
def test_a_worker_that_cannot_start_stops_the_launcher(launch: Any, app: str, reason: str) -> None:
    server = launch(app=f"tests.unit.server.apps:{app}", workers=1)
    assert server.end() == 1
    assert server.log.read_text() == f"sluice: worker 0 did not start: {reason}\n"
    assert server.process.stdout.read() == ""


def test_a_port_in_use(launch: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = launch(port=port)
        assert server.end() == 1
    assert server.log.read_text().splitlines()[-1] == (
        f"sluice: cannot listen on 127.0.0.1:{port}: Address already in use"
    )


def test_a_port_of_another_server(launch: Any) -> None:
    """SO_REUSEPORT alone would let both share it without a word."""
    first = launch("first").ready()
    second = launch("second", port=first.port)
    assert second.end() == 1
    assert "Address already in use" in second.log.read_text()


def test_one_server_a_data_directory(launch: Any) -> None:
    server = launch().ready()
    other = launch()
    assert other.end() == 1
    assert other.log.read_text().splitlines()[-1] == "sluice: another sluice serves this data directory"
    assert server.get("/") == b"ok"


def test_the_lock_is_free_when_the_last_process_is_dead(launch: Any) -> None:
    server = launch().ready()
    pids = server.pids()
    server.signal(signal.SIGKILL)
    server.end()
    eventually(lambda: not any(alive(pid) for pid in pids))
    with (server.data / "index" / "run" / "server.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert launch().ready().get("/") == b"ok"


def test_a_dead_worker_is_replaced_and_what_was_queued_is_served(launch: Any) -> None:
    server = launch(workers=1).ready()
    (pid,) = server.pids()
    os.kill(pid, signal.SIGSTOP)  # so that the next connections stay in the queue of the socket
    queued = [server.connect() for _ in range(20)]
    for connection in queued:
        connection.begin(Request("GET", "/pid"))
    os.kill(pid, signal.SIGKILL)
    answers = {connection.answer().body for connection in queued}
    assert len(answers) == 1
    assert answers != {b"%d" % pid}
    assert (server.data / "calls").read_text() == "called\n" * 2, "once before workers and once for the death"
    (run_dir,) = [path.parent for path in server.data.rglob(deaths.FILE)]
    ((_, process, reason),) = deaths.read_deaths(run_dir)
    assert (process, reason) == ("worker 0", "signal 9")


def test_a_dead_admin_process_is_replaced(launch: Any) -> None:
    server = launch(workers=1, admin=METRICS, admin_port=0).ready().admin()
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
    (admin,) = {int(pid) for pid in children} - server.pids()
    os.kill(admin, signal.SIGKILL)
    assert b"sluice_connections" in Launched.get(_on(server, server.admin_port), "/metrics")


class Load(threading.Thread):
    """Requests in a loop, on one connection as long as the server keeps it; any failure is remembered."""

    def __init__(self, server: Launched, pause: float, fresh: bool) -> None:
        super().__init__()
        self.server = server
        self.pause = pause
        self.fresh = fresh
        self.done = 0
        self.failure: BaseException | None = None
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        body = b"x" * 5000
        connection = self.server.connect()
        try:
            while not self.stopping.is_set():
                answer = connection.ask(Request("PUT", "/echo", body=body))
                assert (answer.status, answer.body) == (200, body)
                self.done += 1
                if self.fresh:
                    connection.close()
                if self.pause:
                    time.sleep(self.pause)
        except BaseException as error:
            self.failure = error
        finally:
            connection.close()


def test_rolling_restarts_under_load_lose_nothing(launch: Any) -> None:
    rounds = sized(2, 20)
    server = launch().ready()
    # busy connections, connections that are idle most of the time, and a new connection for each request
    load = [Load(server, pause, fresh) for pause, fresh in [(0, False)] * 2 + [(0.03, False)] * 4 + [(0.01, True)] * 2]
    for number in range(1, rounds + 1):
        server.signal(signal.SIGHUP)
        eventually(lambda count=number: server.log.read_text().count("rolling restart done") == count)
    for thread in load:
        thread.stopping.set()
        thread.join()
    assert [thread.failure for thread in load] == [None] * len(load)
    assert all(thread.done for thread in load)
    server.signal(signal.SIGTERM)
    assert server.end() == 0


def test_a_rolling_restart_replaces_every_process(launch: Any) -> None:
    server = launch(admin=METRICS, admin_port=0).ready().admin()
    before = server.pids()
    server.signal(signal.SIGHUP)
    eventually(lambda: "rolling restart done" in server.log.read_text())
    eventually(lambda: not any(alive(pid) for pid in before))
    assert not server.pids() & before
    assert b"sluice_connections" in Launched.get(_on(server, server.admin_port), "/metrics")


def test_a_process_that_replaces_another_learns_no_new_time(launch: Any) -> None:
    """By which retentions would end: see `app.index.object_lock.retention_clock`."""
    server = launch(workers=1).ready()
    (pid,), began = server.pids(), server.get("/clock")
    server.signal(signal.SIGHUP)
    eventually(lambda: "rolling restart done" in server.log.read_text())
    eventually(lambda: not alive(pid))
    assert server.get("/clock") == began
    (pid,) = server.pids()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not alive(pid))
    assert server.get("/clock") == began


def test_a_connection_that_was_idle_over_a_rolling_restart_is_used_again(launch: Any) -> None:
    server = launch(workers=1).ready()
    connection = server.connect()
    before = server.get("/pid", connection)
    server.signal(signal.SIGHUP)
    eventually(lambda: "rolling restart done" in server.log.read_text())
    closed = None
    while closed is None:  # the old worker may not have seen its signal yet
        answer = connection.ask(Request("GET", "/pid"))
        closed = answer.headers.get("connection")
        assert (answer.body, closed) in ((before, None), (before, "close"))
    assert server.get("/pid", connection) != before


def test_who_asks_for_a_rolling_restart_while_one_runs_gets_another(launch: Any) -> None:
    """The processes that were replaced by then do not know the code, or the certificate, that it is asked for."""
    server = launch(app="tests.unit.server.apps:create_slowly").ready()
    (server.data / "slow").touch()
    server.signal(signal.SIGHUP)
    eventually(lambda: (server.data / "starting").exists())
    server.signal(signal.SIGHUP)
    server.signal(signal.SIGHUP)
    (server.data / "slow").unlink()
    eventually(lambda: server.log.read_text().count("rolling restart done") >= 2)


def test_a_rolling_restart_that_fails_keeps_the_old_processes(launch: Any) -> None:
    server = launch(app="tests.unit.server.apps:create_unless_broken").ready()
    before = server.pids()
    (server.data / "broken").touch()
    server.signal(signal.SIGHUP)
    eventually(lambda: "the rolling restart ends here" in server.log.read_text())
    assert server.pids() == before


def test_a_worker_that_cannot_be_replaced_is_tried_again(launch: Any) -> None:
    server = launch(app="tests.unit.server.apps:create_unless_broken", workers=1).ready()
    (pid,) = server.pids()
    (server.data / "broken").touch()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: server.log.read_text().count("trying again") >= 2)
    (server.data / "broken").unlink()
    assert server.get("/") == b"ok"


def test_first_processes_are_forked_and_later_ones_begun_anew(launch: Any) -> None:
    """No one holds another's listening socket, or it would be open after a stop."""
    server = launch().ready()
    command = command_of(server.process.pid)
    first = server.pids()
    assert {command_of(pid) for pid in first} == {command}
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = {f"socket:[{row[9]}]" for row in table if row[3] == "0A"}
    held = [{os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()} & listening for pid in first]
    assert [len(sockets) for sockets in held] == [1, 1]
    server.signal(signal.SIGHUP)
    eventually(lambda: "rolling restart done" in server.log.read_text())
    eventually(lambda: not any(alive(pid) for pid in first))
    assert command not in {command_of(pid) for pid in server.pids()}


def test_a_worker_that_dies_as_a_rolling_restart_begins_leaves_no_process_too_many(launch: Any) -> None:
    """Else that one would serve on beside its successor, with the code of before, over every restart to come."""
    server = launch(workers=1).ready()
    (pid,) = server.pids()
    os.kill(server.process.pid, signal.SIGSTOP)  # so that it learns of both at once
    os.kill(pid, signal.SIGKILL)
    server.signal(signal.SIGHUP)
    os.kill(server.process.pid, signal.SIGCONT)
    eventually(lambda: "rolling restart done" in server.log.read_text())
    eventually(lambda: not alive(pid))
    server.signal(signal.SIGHUP)
    eventually(lambda: server.log.read_text().count("rolling restart done") == 2)
    eventually(lambda: len(children(server)) == 1)


def test_a_worker_that_cannot_even_be_begun_is_tried_again(launch: Any, tmp_path: Path) -> None:
    """As while another Python is installed, or where there is no memory for a process."""
    executable = Path(sys.executable)
    installed, environment = executable.parents[1], tmp_path / "environment"
    environment.symlink_to(installed)
    server = launch(workers=1, python=environment / executable.relative_to(installed)).ready()
    (pid,) = server.pids()
    environment.unlink()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: "trying again" in server.log.read_text())
    environment.symlink_to(installed)
    assert server.get("/") == b"ok"
