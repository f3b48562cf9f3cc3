"""Write the table of S3 operations from the router, or with --check compare it.

botocore's model lists the operations of S3; each is serialized with the least parameters that it takes, and the
gateway's router chooses its operation. Notes are in `operations_notes.toml`.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import botocore.session
from botocore.model import OperationModel, Shape
from botocore.serialize import create_serializer

from scripts.generated_pages import put_table
from sluice_s3.app.s3 import handlers
from sluice_s3.app.s3.errors import MethodNotAllowed, NotImplemented
from sluice_s3.app.s3.routing import find_operation
from sluice_s3.app.s3.wire.request import S3Request

NOTES = Path(__file__).with_name("operations_notes.toml")
AWS = "https://docs.aws.amazon.com/AmazonS3/latest/API/API_"
SAME_AS = {
    "GetBucketLifecycle": "GetBucketLifecycleConfiguration",
    "GetBucketNotification": "GetBucketNotificationConfiguration",
    "PutBucketLifecycle": "PutBucketLifecycleConfiguration",
    "PutBucketNotification": "PutBucketNotificationConfiguration",
}
"""Operations that AWS replaced, whose requests are those of others."""
SHARES_ROUTE = {
    "ListBucketInventoryConfigurations": "GetBucketInventoryConfiguration",
    "ListObjectsV2": "ListObjects",
}
"""Operations whose handler is that of another one."""
VALUES: dict[str, Any] = {"string": "x" * 20, "integer": 1, "long": 1, "boolean": True, "blob": b"x", "timestamp": 0}


def s3_operations() -> list[OperationModel]:
    """Return all operations of S3, by name."""
    model = botocore.session.get_session().get_service_model("s3")
    return [model.operation_model(name) for name in sorted(model.operation_names)]


def least_parameters(shape: Shape | None) -> Any:
    """Return the least value of a shape that botocore sends."""
    if shape is None:
        return {}
    if shape.type_name == "structure" and getattr(shape, "is_tagged_union", False):
        name = next(iter(shape.members))
        return {name: least_parameters(shape.members[name])}
    if shape.type_name == "structure":
        return {name: least_parameters(shape.members[name]) for name in shape.required_members}
    if shape.type_name == "list":
        return [least_parameters(shape.member)]
    enum = getattr(shape, "enum", None)
    return enum[0] if enum else VALUES[shape.type_name]


def route(operation: OperationModel) -> str | None:
    """Return the name under which the gateway answers an operation; None for 501 and 405."""
    sent = create_serializer("rest-xml").serialize_to_request(least_parameters(operation.input_shape), operation)
    url = urlsplit(sent["url_path"])
    bucket, _, key = url.path.removeprefix("/").partition("/")
    query = {**dict(parse_qsl(url.query, keep_blank_values=True)), **sent["query_string"]}
    headers = {name.lower(): value for name, value in sent["headers"].items()}
    request = SimpleNamespace(
        method=sent["method"], bucket=bucket or None, key=key or None, query=query, headers=headers
    )
    try:
        return find_operation(cast(S3Request, request)).name
    except (NotImplemented, MethodNotAllowed):
        return None


def is_built(operation: OperationModel) -> bool:
    """Return whether the gateway answers an operation by the one of that name."""
    name: str = operation.name
    return route(operation) == (SAME_AS | SHARES_ROUTE).get(name, name)


def table() -> str:
    """Render one line for each operation. Raises ValueError for a note that no operation needs."""
    handlers.register()
    notes: dict[str, str] = tomllib.loads(NOTES.read_text())
    operations = s3_operations()
    rows = []
    for operation in operations:
        note = notes.pop(operation.name, "")
        if is_built(operation):
            answer = "partly" if note else "yes"
            if operation.name in SAME_AS:
                note = note or f"the former name of {SAME_AS[operation.name]}"
        else:
            answer = "no" if note else "501"
        rows.append(f"| [{operation.name}]({AWS}{operation.name}.html) | {answer} | {note} |")
    if notes:
        raise ValueError(f"{NOTES.name} has notes of no operation: {', '.join(notes)}")
    built = sum("| 501 |" not in row and "| no |" not in row for row in rows)
    head = [f"{built} of {len(rows)} operations are built.", "", "| operation | | |", "|---|---|---|"]
    return "\n".join([*head, *rows]) + "\n"


def main() -> int:
    """Write the table. Returns exit code 1 when --check finds an old table."""
    check = "--check" in sys.argv
    script = "scripts/operations_table.py"
    return put_table("operations", "operations", script, table(), check=check, remedy="make format")


if __name__ == "__main__":
    sys.exit(main())
