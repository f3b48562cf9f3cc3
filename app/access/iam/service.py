"""Both services with all their operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sluice_s3.app.access.iam import access_keys, actions, groups, managed_policies, policies, roles, sts, users
from sluice_s3.app.access.iam.actions import Call, Result

_REGISTERED = (groups, access_keys, managed_policies, policies, roles, users)
IAM, STS = "iam", "sts"
RUN: dict[str, Callable[[str, Call], Awaitable[Result]]] = {IAM: actions.run, STS: sts.run}
NAMES = {IAM: actions.ACTIONS.keys(), STS: sts.OPERATIONS.keys()}
"""Names of the operations of each service."""
