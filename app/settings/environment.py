"""Variables of the environment that look like settings and are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from sluice_s3.app.settings import minio
from sluice_s3.app.settings.settings import Settings

PREFIX = "SLUICE_"
_OF_KUBERNETES = r"(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT(_[0-9]+_\w+)?)"
"""Its own for services whose names begin with the prefix."""
_OTHERS = re.compile(
    # of commands, of compose files, of tests and benchmarks
    r"SLUICE_(USER_SECRET_KEY|IMAGE|LOADTEST_IMAGE|PUBLISH|(TEST|CRASH)_.+|BENCH_(BUCKET|DIRECT|POSTGRES|RUN)|"
    rf"{_OF_KUBERNETES})"
)
_OTHERS_OF_MINIO = re.compile(f"{minio.PREFIX}{_OF_KUBERNETES}")


def setting_variables() -> frozenset[str]:
    """Return the names of all variables that are settings."""
    return frozenset(name for field in Settings.model_fields.items() for name in variables_of(*field))


def variables_of(name: str, field: FieldInfo) -> Iterable[str]:
    """Return the names of the variables that give a setting, the first one first."""
    if isinstance(field.validation_alias, AliasChoices):
        return [str(choice) for choice in field.validation_alias.choices]
    return [f"{PREFIX}{name.upper()}", *minio.variables_of(name)]


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


def find_ignored(environment: Mapping[str, str], known: Iterable[str] = ()) -> list[str]:
    """Return the names of MinIO's variables that change nothing here, but for those that a command knows itself."""
    taken = setting_variables().union(known)
    return sorted(
        name
        for name, value in environment.items()
        if name.startswith(minio.PREFIX) and value and name not in taken and not _OTHERS_OF_MINIO.fullmatch(name)
    )
