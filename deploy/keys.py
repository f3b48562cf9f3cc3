"""The keys of the compose stack: made once, kept in volumes, never in a log.

    keys.py make          make what is missing (what the service `keys` does at each start)
    keys.py show          print the account's keys as shell exports
    keys.py run PROGRAM…  run a program with them in its environment

The account's keys are those of SLUICE_ROOT_ACCESS_KEY and SLUICE_ROOT_SECRET_KEY when both are given. Directories:
`/secrets` for gateways and load generators; `/postgres-secret` and `/grafana-secret` for those two services alone.
Standard library only.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import shlex
import sys
import tomllib
from pathlib import Path

ROOT = Path(os.environ.get("KEYS_ROOT", "/"))
SINGLE = ROOT / "secrets" / "single.toml"
CLUSTER = ROOT / "secrets" / "cluster.toml"
MASTER = ROOT / "secrets" / "master-key"
POSTGRES = ROOT / "postgres-secret" / "password"
GRAFANA = ROOT / "grafana-secret" / "password"
INDEX = "postgresql://sluice:{password}@postgres:5432/sluice"


def make() -> None:
    """Write what is missing or was given. Of several calls at once, one goes first."""
    lock = os.open(SINGLE.parent, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        make_locked()
    finally:
        os.close(lock)


def make_locked() -> None:
    """Write the files that are missing, and the account's keys when others were given."""
    for path in (POSTGRES, GRAFANA):
        if not path.exists():
            # read by a user of another image; nobody else has the volume
            write(path, secrets.token_urlsafe(30), 0o444)
    kept = tomllib.loads(SINGLE.read_text()) if SINGLE.exists() else {}
    wanted = given() or kept or {
        "root_access_key": "SL" + secrets.token_hex(9).upper(),
        "root_secret_key": secrets.token_urlsafe(30),
    }  # fmt: skip
    if not MASTER.exists():  # never replaced: it seals what gateways encrypt
        write(MASTER, base64.b64encode(secrets.token_bytes(32)).decode() + "\n", 0o400)
    wanted = {"admin_token": kept.get("admin_token", secrets.token_urlsafe(30)), **wanted}
    write(SINGLE, toml(wanted), 0o400)
    write(CLUSTER, toml({**wanted, "index": INDEX.format(password=POSTGRES.read_text())}), 0o400)


def given() -> dict[str, str]:
    """Return the account's keys from the environment.

    Exits when only one of them is set.
    """
    access_key = os.environ.get("SLUICE_ROOT_ACCESS_KEY", "")
    secret_key = os.environ.get("SLUICE_ROOT_SECRET_KEY", "")
    if bool(access_key) != bool(secret_key):
        sys.exit("keys: give both SLUICE_ROOT_ACCESS_KEY and SLUICE_ROOT_SECRET_KEY, or neither to have them made")
    return {"root_access_key": access_key, "root_secret_key": secret_key} if access_key else {}


def toml(values: dict[str, str]) -> str:
    """Return the text of a settings file.

    A JSON string of ASCII is also one of TOML, except half a surrogate pair.
    """
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def write(path: Path, text: str, mode: int) -> None:
    """Replace a file at once: a gateway may be reading it."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.chmod(mode)
    fresh.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(directory)
    os.close(directory)


def variables() -> dict[str, str]:
    """Return the account's keys by the names that S3 clients know."""
    kept = tomllib.loads(SINGLE.read_text())
    region = os.environ.get("SLUICE_REGION") or "us-east-1"
    return {
        "AWS_ACCESS_KEY_ID": kept["root_access_key"],
        "AWS_SECRET_ACCESS_KEY": kept["root_secret_key"],
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
    }


def make_or_explain() -> None:
    """Make them. Exits with the cure where this user cannot write, as in a volume that root made earlier."""
    try:
        make()
    except PermissionError as error:
        directory = Path(error.filename or SINGLE)
        directory = directory if directory.is_dir() else directory.parent
        sys.exit(
            f"keys: user {os.geteuid()} cannot write to {directory}, which belongs to user {directory.stat().st_uid}: "
            f"remove this volume if it is empty (`docker volume ls`), or run once with it: "
            f"`docker compose run --rm --user 0 --cap-add CHOWN --entrypoint chown keys {os.geteuid()} {directory}`"
        )


def main(arguments: list[str]) -> None:
    """See above."""
    match arguments:
        case ["make"]:
            make_or_explain()
        case ["show"]:
            make_or_explain()
            print("".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables().items()), end="")
        case ["run", program, *rest]:
            os.execvpe(program, [program, *rest], {**os.environ, **variables()})  # noqa: S606
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
