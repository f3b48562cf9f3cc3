"""Write the tables of error codes from the classes of errors, or with --check compare them."""

from __future__ import annotations

import sys
from types import ModuleType

from scripts.generated_pages import put_table
from sluice_s3.app.access.iam import errors as iam_errors
from sluice_s3.app.s3 import errors as s3_errors


def rows(module: ModuleType, base: type) -> list[str]:
    """Render a line for each error class of a module, by code."""
    found = {
        one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base) and one is not base
    }
    lines = []
    for one in found:
        code = getattr(one, "code", "")
        code = code if isinstance(code, str) and code else one.__name__
        meaning = " ".join((one.__doc__ or "").split()).replace("|", "\\|")
        lines.append(f"| `{code}` | {getattr(one, 'status', '')} | {meaning} |")
    return sorted(lines, key=str.lower)


def table() -> str:
    """Render the errors of S3, then those of IAM and STS."""
    head = ["| code | status | meaning |", "|---|---|---|"]
    lines = ["## S3", "", *head, *rows(s3_errors, s3_errors.S3Error)]
    lines += ["", "## IAM and STS", "", *head, *rows(iam_errors, iam_errors.IamError)]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the tables. Returns exit code 1 when --check finds old ones."""
    return put_table(
        "errors", "errors", "scripts/errors_table.py", table(), check="--check" in sys.argv, remedy="make format"
    )


if __name__ == "__main__":
    sys.exit(main())
