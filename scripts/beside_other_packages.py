"""Checks that an installed Sluice and a user's own package `app` leave each other alone. For `check_install.sh`."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

PROJECT = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "app-of-a-user"\nversion = "1"\n[tool.setuptools]\npackages = ["app"]\n',
    "app/__init__.py": 'OWNER = "user"\n',
    "app/cli.py": 'print("of the user")\n',
}
IS_THE_USERS = "import app; assert app.OWNER == 'user', app.__file__"


def main(sluice: str, directory: Path) -> None:
    """Run all trials in a new project at `directory`. Raises AssertionError, CalledProcessError."""
    for name, text in PROJECT.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    python = sys.executable
    version = run(sluice, "version", where=elsewhere)
    tops = {Path(file).parts[0] for file in files("sluice-s3") or () if not str(file).startswith("..")}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"sluice_s3"}, tops

    assert run(sluice, "version", where=directory) == version
    assert run(sluice, "version", where=directory, PYTHONPATH=".") == version
    assert run(python, "-m", "sluice_s3.app.cli", "version", where=directory) == version
    run(python, "-c", IS_THE_USERS, where=directory)
    nothing = "from importlib.util import find_spec; assert not any(map(find_spec, ('app', 'loadtests', 'migrations')))"
    run(python, "-P", "-c", nothing, where=elsewhere)
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", str(directory), where=elsewhere)
    run(python, "-P", "-c", IS_THE_USERS, where=elsewhere)
    assert run(sluice, "version", where=elsewhere) == version
    run(*pip, "uninstall", "--yes", "app-of-a-user", where=elsewhere)
    assert run(sluice, "version", where=elsewhere) == version
    print("beside a user's own `app`: 6 trials passed")


def run(*command: str, where: Path, **variables: str) -> str:
    """Run a command in the project and return its output. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    done = subprocess.run(command, cwd=where, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
