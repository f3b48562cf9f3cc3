"""Declared transactions: `Index` declares each once, and each engine runs it.

A declaration is a descriptor. It gives an index a function of the declaration's name, with the parameters of the
transaction. The function is created at its first use and cached in the `__dict__` of the index.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from inspect import signature
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from sluice_s3.app.index.engine.audit_trail import TRAIL, AuditedTransaction, State
from sluice_s3.app.index.engine.lock_keys import Discovery
from sluice_s3.app.index.engine.outbox import BUILDER, ObjectChange, OutboxTransaction
from sluice_s3.app.index.engine.procedures import Procedure
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.sql.transaction import Transaction

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class DeferredCommit(Protocol):
    """A change that waits for its blob, without a return to the event loop.

    Exactly one of `proceed` and `fail` is called, once, in any thread. Then `future` ends as an await of the change
    itself would. `abandon` gives up a change that does not run yet. So does a timeout, when the blob and the queue
    together take longer than a commit may.
    """

    @property
    def future(self) -> asyncio.Future[CommitResult]:
        """The future that ends with the commit."""
        ...

    def proceed(self, locator: str) -> None:
        """Continue with the commit, because the blob is durable."""
        ...

    def fail(self, error: Exception) -> None:
        """Give up, because there is no blob.

        `future` raises `error`.
        """
        ...

    def abandon(self) -> bool:
        """Give up the wait.

        Returns True when certainly nothing is or will be committed.
        """
        ...


class Engine(ABC):
    """The methods that a database must implement for the declarations of an index."""

    incarnation = 0
    """The number of this writer; 0 for an index that registers none."""

    @abstractmethod
    async def _read(self, transaction: Transaction[T]) -> T:
        """Run a read-only transaction, each statement by itself."""

    @abstractmethod
    async def _read_snapshot(self, transaction: Transaction[T]) -> T:
        """Run a read-only transaction in one state of the index."""

    async def _read_settled(self, read: Callable[[], Transaction[list[R]]], number: Callable[[R], int]) -> list[R]:
        """Return rows in the order of their numbers.

        No number below those returned is committed later.
        """
        return await self._read(read())

    @abstractmethod
    async def _scan(self, transaction: Transaction[T], *, snapshot: bool = False) -> T:
        """Run a long read-only transaction beside the other work of the event loop."""

    @abstractmethod
    def _start(self, write: Write[..., CommitResult], arguments: Callable[[str], tuple[Any, ...]]) -> DeferredCommit:
        """Prepare a transaction whose arguments are known once its blob has a locator."""

    @abstractmethod
    async def _commit(self, write: Write[..., T], arguments: tuple[Any, ...]) -> T:
        """Commit a transaction, and return its result."""


class Declared(ABC, Generic[P, T]):
    """A transaction of the index, documented at its function."""

    name = ""
    function: Callable[..., Transaction[T]]
    bound = 0
    """The number of leading arguments that the index supplies."""

    def __set_name__(self, owner: type[Engine], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, engine: None, owner: type[Engine]) -> Self: ...

    @overload
    def __get__(self, engine: Engine, owner: type[Engine]) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, engine: Engine | None, owner: type[Engine]) -> Self | Callable[P, Coroutine[Any, Any, T]]:
        if engine is None:
            return self
        call = self.bind(engine)
        if getattr(owner, self.name) is self:  # else `super()` requested it
            setattr(engine, self.name, call)
        return call

    def bind(self, engine: Engine) -> Callable[P, Coroutine[Any, Any, T]]:
        """Return the function of an index, with the parameters of the transaction.

        It is compiled, like those of `namedtuple`. So Python itself fills in defaults and names, and a call costs no
        more than a hand-written one.
        """
        parameters = list(signature(self.function).parameters.values())[self.bound :]
        namespace: dict[str, Any] = {"_declared": self, "_function": self.function, "_engine": engine}
        head: list[str] = []
        passed: list[str] = []
        for parameter in parameters:
            keyword = parameter.kind is parameter.KEYWORD_ONLY
            if keyword and "*" not in head:
                head.append("*")
            namespace[f"default_{parameter.name}"] = parameter.default
            default = "" if parameter.default is parameter.empty else f"=default_{parameter.name}"
            head.append(parameter.name + default)
            passed.append(f"{parameter.name}={parameter.name}" if keyword else parameter.name)
        source = f"lambda {', '.join(head)}: {self.run(', '.join(passed))}"
        function: Callable[P, Coroutine[Any, Any, T]] = eval(source, namespace)  # noqa: S307 - our own names
        return function

    @abstractmethod
    def run(self, passed: str) -> str:
        """Return the expression that runs `_function` of `_declared` on an `_engine`.

        `passed` are the arguments. No parameter of a transaction has such a name.
        """


class Read(Declared[P, T]):
    """A read-only transaction.

    `snapshot`: whether it reads one state of the index, always or when that function says so.
    """

    def __init__(self, function: Callable[P, Transaction[T]], *, snapshot: bool | Callable[P, bool] = False) -> None:
        self.function = function
        self.snapshot = snapshot

    def run(self, passed: str) -> str:
        """See `Declared`."""
        read = "_engine._read_snapshot" if self.snapshot else "_engine._read"
        if callable(self.snapshot):
            read = f"(_engine._read_snapshot if _declared.snapshot({passed}) else _engine._read)"
        return f"{read}(_function({passed}))"


class SettledRead(Declared[P, list[R]]):
    """A read of rows in number order; no smaller number is committed later."""

    def __init__(self, function: Callable[P, Transaction[list[R]]], *, number: Callable[[R], int]) -> None:
        self.function = function
        self.number = number

    def run(self, passed: str) -> str:
        """See `Declared`."""
        return f"_engine._read_settled(lambda: _function({passed}), _declared.number)"


class Scan(Declared[P, T]):
    """A long read-only transaction.

    `snapshot`: whether it reads one state of the index.
    """

    def __init__(self, function: Callable[P, Transaction[T]], *, snapshot: bool = False) -> None:
        self.function = function
        self.snapshot = snapshot

    def run(self, passed: str) -> str:
        """See `Declared`."""
        return f"_engine._scan(_function({passed}), snapshot=_declared.snapshot)"


def always(*_: object) -> bool:
    """Return True, for any arguments."""
    return True


def never(*_: object) -> bool:
    """Return False, for any arguments."""
    return False


class Write(Declared[P, T]):
    """A transaction that changes rows.

    All functions get its arguments by position. `locks`: the locks to take before it reads; see
    `app.index.engine.lock_keys`. `discovers`: the rows to look up for more locks. `events`: the changes of keys, from
    the result and the arguments, written to the outbox within `emit_events`. `grows`: it adds data, and is refused when
    the disk is full. `invalidates`: the caches of every process must see it. `procedure`: the server procedure that can
    do the same. `brief`: it takes a few statements, so that it may run on the event loop.
    """

    wraps = False
    """`transaction` may return another function than the declared one."""

    def __init__(
        self,
        function: Callable[P, Transaction[T]],
        *,
        locks: Callable[..., Iterable[int] | None],
        discovers: Discovery | None = None,
        events: Callable[..., list[ObjectChange]] | None = None,
        grows: bool = False,
        invalidates: bool = False,
        procedure: Callable[..., Procedure] | None = None,
        brief: Callable[..., bool] = never,
    ) -> None:
        self.function = function
        self.locks = locks
        self.discovers = discovers
        self.events = events
        self.grows = grows
        self.invalidates = invalidates
        self.procedure = procedure
        self.brief = brief
        self.wraps = self.wraps or events is not None

    def transaction(self) -> Callable[..., Transaction[T]]:
        """Return the function to run.

        Within `emit_events`, it is one that also writes to the outbox.
        """
        builder = BUILDER.get()
        if builder is None or self.events is None:
            return self.function
        return OutboxTransaction(self.function, self.events, builder)

    def run(self, passed: str) -> str:
        """See `Declared`."""
        return f"_engine._commit(_declared, ({passed}{',' if passed else ''}))"


class AuditedWrite(Write[P, T]):
    """An administrative change.

    Within `audit_trail.audited` it also writes an event. `state` and `outcome`: see `AuditedTransaction`.
    """

    wraps = True

    def __init__(
        self,
        function: Callable[P, Transaction[T]],
        *,
        locks: Callable[..., Iterable[int] | None],
        state: State | None = None,
        outcome: Callable[[T], Any] | None = None,
        grows: bool = False,
        invalidates: bool = False,
    ) -> None:
        super().__init__(function, locks=locks, grows=grows, invalidates=invalidates)
        self.state = state
        self.outcome = outcome

    def transaction(self) -> Callable[..., Transaction[T]]:
        """See `Write.transaction`."""
        trail = TRAIL.get()
        return self.function if trail is None else AuditedTransaction(self.function, self.state, self.outcome, trail)


class OwnWrite(Write[P, T]):
    """A transaction whose first argument is the number of its writer."""

    bound = 1

    def __init__(
        self,
        function: Callable[Concatenate[int, P], Transaction[T]],
        *,
        locks: Callable[..., Iterable[int] | None],
        grows: bool = False,
    ) -> None:
        super().__init__(function, locks=locks, grows=grows)  # type: ignore[arg-type]

    def run(self, passed: str) -> str:
        """See `Declared`."""
        return f"_engine._commit(_declared, (_engine.incarnation, {passed}))"
