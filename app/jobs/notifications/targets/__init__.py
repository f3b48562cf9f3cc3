"""Targets of event notifications: one module for each kind.

Each needs an extra, except webhooks. open_target(settings) → Target
"""

from __future__ import annotations

from importlib import import_module

from sluice_s3.app.jobs.notifications.targets.base import MessageRefused, Target, TargetError
from sluice_s3.app.settings import NotifyTarget

MODULES = {"webhook": "webhook", "nats": "nats_subject", "kafka": "kafka_topic", "amqp": "amqp_exchange"}

__all__ = ["MessageRefused", "Target", "TargetError", "open_target"]


def open_target(settings: NotifyTarget) -> Target:
    """Open the target of these settings; it connects at the first message.

    Raises TargetError without its library.
    """
    try:
        module = import_module(f"{__name__}.{MODULES[settings.kind]}")
    except ImportError as error:
        raise TargetError(f"{error.name} is not installed: the extra {settings.kind!r} has it") from None
    made: Target = module.open_target(settings)
    return made
