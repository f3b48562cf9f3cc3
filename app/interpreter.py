"""How the Python that runs this was built.

As a program it needs nothing but the standard library, and prints JSON: so one interpreter can describe another.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import sysconfig
from typing import NamedTuple

FLAGS = ("CONFIG_ARGS", "PY_CFLAGS", "PY_CORE_CFLAGS", "PY_CFLAGS_NODIST", "PY_CORE_LDFLAGS")
"""What an interpreter knows of how it was built."""
DISTRIBUTION_PREFIX = "/usr"
"""Where distributions install theirs. They optimise them by a profile, which the flags do not always say (Debian's)."""


class Interpreter(NamedTuple):
    """An interpreter and how it was built."""

    executable: str
    version: str
    compiler: str
    flags: str
    optimised: bool
    """Whether it was compiled with a profile of itself (`--enable-optimizations`)."""
    lto: bool
    """Whether it says that it was optimised at link time."""

    @property
    def advice(self) -> str:
        """What an operator should know of it, in one line; empty when it is as it should be."""
        if self.optimised:
            return ""
        return (
            f"Python {self.version} ({self.executable}) was built without --enable-optimizations: a request takes "
            "about a tenth more instructions than with a distribution's Python"
        )


def describe_interpreter() -> Interpreter:
    """Describe this interpreter."""
    flags = " ".join(str(sysconfig.get_config_var(name) or "") for name in FLAGS)
    return Interpreter(
        os.path.realpath(sys.executable),
        platform.python_version(),
        platform.python_compiler(),
        sysconfig.get_config_var("PY_CFLAGS") or "",
        "-fprofile-use" in flags or "--enable-optimizations" in flags or sys.base_prefix == DISTRIBUTION_PREFIX,
        "-flto" in flags or "--with-lto" in flags,
    )


if __name__ == "__main__":
    print(json.dumps(describe_interpreter()._asdict()))
