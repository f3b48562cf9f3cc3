"""Those who are told of changes: one module a kind, each an extra but for webhooks.

open_target(settings) → Target
"""

from __future__ import annotations

from importlib import import_module

from app.feature_settings import NotifyTarget
from app.jobs.targets.base import Target, TargetError

MODULES = {"webhook": "webhook", "nats": "nats_subject", "kafka": "kafka_topic", "amqp": "amqp_exchange"}

__all__ = ["Target", "TargetError", "open_target"]


def open_target(settings: NotifyTarget) -> Target:
    """The target of these settings; it connects when something is sent. Raises TargetError without its library."""
    try:
        module = import_module(f"{__name__}.{MODULES[settings.kind]}")
    except ImportError as error:
        raise TargetError(f"{error.name} is not installed: the extra {settings.kind!r} has it") from None
    made: Target = module.open_target(settings)
    return made
