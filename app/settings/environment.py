"""Variables of the environment that look like settings and are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from sluice_s3.app.settings.settings import Settings

PREFIX = "SLUICE_"
_OTHERS = re.compile(
    # of commands, of compose files, of tests and benchmarks
    r"SLUICE_(USER_SECRET_KEY|IMAGE|LOADTEST_IMAGE|PUBLISH|(TEST|BENCH|CRASH)_.+"
    # Kubernetes' own for services whose names begin with `sluice`
    r"|(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT(_[0-9]+_\w+)?))"
)


def setting_variables() -> frozenset[str]:
    """Return the names of all variables that are settings."""
    return frozenset(name for field in Settings.model_fields.items() for name in variables_of(*field))


def variables_of(name: str, field: FieldInfo) -> Iterable[str]:
    """Return the names of the variables that give a setting, the first one first."""
    if isinstance(field.validation_alias, AliasChoices):
        return [str(choice) for choice in field.validation_alias.choices]
    return [f"{PREFIX}{name.upper()}"]


def find_unknown(environment: Mapping[str, str]) -> str | None:
    """Return what is wrong with a variable that has the settings' prefix and is none; None if there is no such one.

    Empty ones count as missing.
    """
    known = setting_variables()
    for name in sorted(environment):
        if not (name.startswith(PREFIX) and environment[name]) or name in known:
            continue
        if _OTHERS.fullmatch(name) is None:
            import difflib  # for this message only

            similar = difflib.get_close_matches(name, known, 1)
            hint = f" (did you mean {similar[0]}?)" if similar else ""
            return f"{name}: there is no such setting{hint}"
    return None
