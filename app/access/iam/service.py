"""Both services with all their operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from app.access.iam import groups, keys, policies, roles, sts, table, users
from app.access.iam.table import Call, Result

_REGISTERED = (groups, keys, policies, roles, users)
IAM, STS = "iam", "sts"
RUN: dict[str, Callable[[str, Call], Awaitable[Result]]] = {IAM: table.run, STS: sts.run}
NAMES = {IAM: table.TABLE.keys(), STS: sts.OPERATIONS.keys()}
"""Of the operations of each service."""
