"""Gathers connections on as few workers as carry them, and spreads them once that makes the server faster.

Small requests cost less CPU in a busy worker than in two half-busy ones: it finds several of them at each turn of its
loop, commits them as one group, and waits for no other worker's lock on the index. (By warp, 16 clients, two cores:
DeleteObjects of one key cost half, HEAD two thirds.) So a worker accepts no connection while one before it has room. A
worker that uses up a core while the machine has one to spare hands over a part of its connections. Those with TLS stay,
since its state does not leave a process; then only new ones go to others.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from sluice_s3.app.server.http.interfaces import OpenConnection
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.processes.acceptor import Acceptor
from sluice_s3.app.server.processes.handover import Inbox
from sluice_s3.app.server.shared_memory.worker_loads import WorkerLoad, WorkerLoads

TICK_SECONDS = 0.25
HAS_ROOM_BELOW = 0.75
"""How busy a worker may be that takes further connections: `WorkerLoad.busy`."""
BUSY_ABOVE = 0.85
"""How busy a worker is when it hands over a part of its connections."""
SPARE_CORES = 0.5
"""Cores of the machine that must be idle for that: else another worker would only share the same ones.

They need not be where the worker waits for the threads of a slow store: every worker has threads of its own.
"""
SPARE_CORES_OF_LOOP = 0.35
"""The same where the event loop's thread alone is that busy: requests then wait for it, however few the threads do."""
BUSY_TICKS = 4
"""Ticks for which that must hold: a client that begins is idle at first."""
GATHER_TICKS = 2
"""Ticks for which two workers must use so little that one takes all connections."""
RELIEVED_SECONDS = 60.0
"""Seconds for which a worker keeps connections that relieved another: gathered again, they would wait for its loop."""
GATHERED_BELOW = 0.6
"""Cores that two workers use together, below which one takes all connections."""
CROWDED_BELOW = 0.15
"""Idle cores below which the machine is full, mostly with what others do: two workers then win nothing over one."""
CROWDED_GATHERED_BELOW = 1.1
"""The same as `GATHERED_BELOW` on a full machine; one worker needs less for the same than two."""
MAX_HANDED = 64
"""Connections that a worker hands over in one tick."""
RECENT_SECONDS = 2.0
"""Seconds for which a connection counts as in use after a request."""
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

Loads = Mapping[int, WorkerLoad]


def accepts(own: int, loads: Loads, most: int) -> bool:
    """Return whether `own` has room for a connection, of `most` at most, and no worker before it has.

    Where all others have as many as that, too, it takes more.
    """
    if own in loads and loads[own].connections >= most:
        return all(load.connections >= most for load in loads.values())
    earlier = (load for worker, load in loads.items() if worker < own)
    return not any(load.busy < HAS_ROOM_BELOW and load.connections < most for load in earlier)


def choose_relief(own: int, loads: Loads, most: int) -> tuple[int, float] | None:
    """Return the worker that relieves the busy worker `own`, and its share of the connections; None: none has room."""
    others = {worker: load for worker, load in loads.items() if worker != own and load.connections < most}
    if not others:
        return None
    least = min(others, key=lambda worker: others[worker].busy)
    own_busy, busy = loads[own].busy, others[least].busy
    return (least, (own_busy - busy) / own_busy / 2) if busy < HAS_ROOM_BELOW else None


def choose_gatherer(own: int, loads: Loads, most: int, idle: float | None) -> int | None:
    """Return the first worker before `own` that carries the connections of both; None: all stay.

    Only the last worker with connections gives them away, so that no worker is chosen twice at a time.
    """
    load = loads[own]
    if any(one.connections for worker, one in loads.items() if worker > own):
        return None
    limit = CROWDED_GATHERED_BELOW if idle is not None and idle < CROWDED_BELOW else GATHERED_BELOW
    for worker, one in loads.items():
        if worker >= own:
            return None
        fits = load.cores + one.cores < limit and load.threads + one.threads < HAS_ROOM_BELOW
        if fits and load.connections + one.connections < most:
            return worker
    return None


class IdleCores:
    """How many cores of the machine do nothing: `idle` and `iowait` of proc_stat(5)."""

    def __init__(self, stat: Path = Path("/proc/stat")) -> None:
        self._stat = stat
        self._looked_at = 0.0
        self._idle_seconds = 0.0

    def look(self, now: float) -> float | None:
        """Return the idle cores since the last look; None if that was some ticks ago. `now` is in seconds."""
        try:
            with self._stat.open("rb") as file:
                fields = file.readline().split()
            seconds = (int(fields[4]) + int(fields[5])) / CLOCK_TICKS
        except (OSError, ValueError, IndexError):  # a sandbox may hide it
            return None
        passed, done = now - self._looked_at, seconds - self._idle_seconds
        self._looked_at, self._idle_seconds = now, seconds
        return done / passed if 0 < passed < 3 * TICK_SECONDS else None


class Balancer:
    """Decides for one worker which connections it accepts and keeps."""

    def __init__(
        self,
        state: HttpState,
        acceptor: Acceptor,
        inbox: Inbox,
        loads: WorkerLoads,
        worker: int,
        thread_share: Callable[[], float],
    ) -> None:
        self._state = state
        self._acceptor = acceptor
        self._inbox = inbox
        self._loads = loads
        self._worker = worker
        self._thread_share = thread_share
        self._most = min(state.settings.max_connections, state.settings.max_requests) // 2
        self._idle = IdleCores()
        self._busy_ticks = 0
        self._gather_ticks = 0
        self._keeps_until = 0.0
        self._ticked_at = time.monotonic()
        self._cpu_seconds = time.process_time()
        self._loop_seconds = time.thread_time()
        self._loop_cores = 0.0
        """Cores that the event loop's thread used since the last tick."""
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Balance the connections from now on."""
        self._tick()

    def stop(self) -> None:
        """Keep the connections that are here or in the inbox: there may be no next process, and requests on them."""
        if self._timer is not None:
            self._timer.cancel()
            self._state.loop.remove_reader(self._inbox.fileno())
        if self._opening is not None:
            self._opening.cancel()
        while self._adopt():
            pass
        self._inbox.close()

    def _tick(self) -> None:
        self._timer = self._state.loop.call_later(TICK_SECONDS, self._tick)
        self._state.loop.add_reader(self._inbox.fileno(), self._adopt)
        now, used, by_loop = time.monotonic(), time.process_time(), time.thread_time()
        passed = max(now - self._ticked_at, 0.001)
        cores, self._loop_cores = (used - self._cpu_seconds) / passed, (by_loop - self._loop_seconds) / passed
        self._ticked_at, self._cpu_seconds, self._loop_seconds = now, used, by_loop
        load = WorkerLoad(cores, self._thread_share(), len(self._state.connections))
        self._loads.publish(self._worker, load)
        loads = self._loads.read()
        self._switch_acceptor(accepts(self._worker, loads, self._most))
        if self._state.connections:
            self._balance({**loads, self._worker: load}, self._idle.look(now))

    def _balance(self, loads: Loads, idle: float | None) -> None:
        own = loads[self._worker]
        needed = SPARE_CORES_OF_LOOP if self._loop_cores > BUSY_ABOVE else SPARE_CORES
        relievable = own.threads > BUSY_ABOVE or (own.cores > BUSY_ABOVE and idle is not None and idle > needed)
        self._busy_ticks = self._busy_ticks + 1 if relievable else 0
        if relievable:
            if self._busy_ticks >= BUSY_TICKS and (relief := choose_relief(self._worker, loads, self._most)):
                worker, share = relief
                since = self._state.now - RECENT_SECONDS
                recent = [one for one in self._state.connections if one.since >= since]
                room = self._most - loads[worker].connections
                self._hand_over(recent, min(round(len(recent) * share), room), worker)
            return
        gatherer = choose_gatherer(self._worker, loads, self._most, idle)
        self._gather_ticks = 0 if gatherer is None else self._gather_ticks + 1
        if gatherer is not None and self._gather_ticks >= GATHER_TICKS and self._state.now >= self._keeps_until:
            self._hand_over(list(self._state.connections), MAX_HANDED, gatherer)

    def _switch_acceptor(self, accepting: bool) -> None:
        if not accepting:
            self._acceptor.close()
        elif not self._acceptor.is_open and (self._opening is None or self._opening.done()):
            self._opening = self._state.loop.create_task(self._open())

    async def _open(self) -> None:
        with suppress(OSError):  # no descriptor is left: the next tick tries again
            await self._acceptor.open()

    def _hand_over(self, connections: list[OpenConnection], count: int, worker: int) -> None:
        """Hand over so many of these connections, MAX_HANDED at most, that wait for a request at present."""
        left = min(count, MAX_HANDED)
        for connection in connections:
            if left <= 0:
                return
            if not connection.is_between_requests():
                continue
            descriptor = connection.transport.get_extra_info("socket").fileno()
            idle = self._state.now - connection.since
            if not self._inbox.send(
                worker, descriptor, connection.listener, is_new=connection.fresh, idle_seconds=idle
            ):
                return
            connection.transport.abort()  # this closes the descriptor of this process; the connection is in the message
            left -= 1

    def _adopt(self) -> bool:
        """Serve the connections in the inbox; return whether there were any."""
        found = False
        try:
            for handed in self._inbox.take():
                self._acceptor.adopt(handed)
                found = True
                self._keeps_until = self._state.now + RELIEVED_SECONDS
        except OSError:  # no descriptor is left: the loop would call this again and again, the next tick is soon enough
            self._state.loop.remove_reader(self._inbox.fileno())
            return False
        return found
