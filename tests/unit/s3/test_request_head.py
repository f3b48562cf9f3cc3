"""The parsed head of a request is read-only for handlers: every step sees what the client sent.

Only the modules of `ALLOWED` assign it, where a request is parsed or made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3 import app

APP = Path(next(iter(app.__path__)))

HEAD = frozenset(
    {"method", "raw_path", "raw_query", "names", "values", "headers", "repeated", "scheme", "client"}
)  # of `S3Request`

ALLOWED = {
    "s3/wire/request.py": "derives the fields of the head from the names and values on the wire",
    "server/http/connection.py": "sets the scheme and the client of a connection",
    "server/http/request_head.py": "parses the request line and the fields",
    "s3/objects/system_put.py": "makes the PUT of an object that the gateway itself writes, such as a log",
    "s3/objects/post_object.py": "makes a PUT of a form: its fields are the headers, before any handler reads them",
    "s3/auth/signatures/hoist.py": "parses a presigned URL: S3 takes the headers in its query for headers",
    "s3/auth/signatures/sigv2.py": "parses a presigned URL of version 2, whose query has two more headers",
    "s3/auth/authentication.py": "takes the client of an archive from the URL that this gateway signed for itself",
    "admin/simulation/conditions.py": "makes a request of which only the condition values are read",
    "init_file/buckets.py": "makes the requests that the init file of a start amounts to",
    "s3/website/serve.py": "makes the second read, of the error document: conditions were of the first object",
}
"""Modules that may assign the head, and why."""

MUTATIONS = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "setdefault",
        "sort",
        "update",
    }
)
"""Methods that change a dictionary, list or set in place."""


class Scope(ast.NodeVisitor):
    """Finds assignments to the head of a request.

    A request is what is named so, is annotated as `S3Request`, or is a new one. An alias of a part of its head counts
    as that part.
    """

    def __init__(self) -> None:
        self.found: list[tuple[int, str]] = []
        self._requests: list[set[str]] = [{"request", "_request"}]
        self._aliases: list[dict[str, str]] = [{}]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        annotated = {
            one.arg for one in arguments if one.annotation is not None and "S3Request" in names(one.annotation)
        }
        self._requests.append(self._requests[-1] | annotated)
        self._aliases.append(dict(self._aliases[-1]))
        if node.args.args[:1] and node.args.args[0].arg == "self" and self._in_request:
            self._requests[-1].add("self")
        self.generic_visit(node)
        self._requests.pop()
        self._aliases.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    _in_request = False

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._in_request = self._in_request, node.name == "S3Request"
        self.generic_visit(node)
        self._in_request = before

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._note(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and "S3Request" in names(node.annotation):
            self._requests[-1].add(node.target.id)
        if node.value is not None:
            self._note(node.target, node.value)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del) and (part := self._part(node)):
            self.found.append((node.lineno, part))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del) and (part := self._part(node.value)):
            self.found.append((node.lineno, part))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and (part := self._part(node.target)):  # in place, for these types
            self.found.append((node.lineno, part))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in MUTATIONS and (part := self._part(called.value)):
            self.found.append((node.lineno, part))
        if isinstance(called, ast.Name) and called.id in ("setattr", "delattr") and self._is_request(node.args[0]):
            self.found.append((node.lineno, "any"))
        self.generic_visit(node)

    def _note(self, target: ast.expr, value: ast.expr) -> None:
        """Remember what a name means from here on."""
        if not isinstance(target, ast.Name):
            return
        self._aliases[-1].pop(target.id, None)
        if part := self._part(value):
            self._aliases[-1][target.id] = part
        if isinstance(value, ast.Call) and "S3Request" in names(value.func):
            self._requests[-1].add(target.id)
        if self._is_request(value):
            self._requests[-1].add(target.id)

    def _is_request(self, node: ast.expr) -> bool:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        return name in self._requests[-1]

    def _part(self, node: ast.expr) -> str:
        """The part of the head that an expression is; empty for all others."""
        if isinstance(node, ast.Name):
            return self._aliases[-1].get(node.id, "")
        if isinstance(node, ast.Attribute) and node.attr in HEAD and self._is_request(node.value):
            return node.attr
        return ""


def names(node: ast.AST) -> set[str]:
    """All names in an expression, those in quoted annotations included."""
    return {
        text
        for one in ast.walk(node)
        for text in (
            [one.id] if isinstance(one, ast.Name)
            else [one.attr] if isinstance(one, ast.Attribute)
            else one.value.replace("|", " ").split() if isinstance(one, ast.Constant) and isinstance(one.value, str)
            else []
        )
    }  # fmt: skip


def assignments(text: str) -> list[tuple[int, str]]:
    scope = Scope()
    scope.visit(ast.parse(text))
    return scope.found


def in_app() -> Iterator[tuple[str, list[tuple[int, str]]]]:
    for path in sorted(APP.rglob("*.py")):
        if found := assignments(path.read_text()):
            yield path.relative_to(APP).as_posix(), found


def test_only_where_requests_are_parsed_or_made() -> None:
    assert len(list(APP.rglob("*.py"))) > 300
    found = dict(in_app())
    assert {module: places for module, places in found.items() if module not in ALLOWED} == {}
    assert found.keys() == ALLOWED.keys()  # none is allowed for nothing


@pytest.mark.parametrize(
    "body",
    [
        "request.method = 'GET'",
        "request.raw_path, request.bucket = b'/', 'b'",
        "request.raw_query += b'x'",
        "request.headers['range'] = ''",
        "del request.headers['range']",
        "request.headers.pop('range')",
        "headers = request.headers; headers.update(other)",
        "headers = request.headers; headers |= other",
        "request.values: list[bytes] = []",
        "with opened() as request.client: pass",
        "for request.scheme in (): pass",
        "setattr(request, name, 1)",
        "self._request.names = None",
        "caller.request.repeated = frozenset()",
        "other.method = 'GET'",
        "made = S3Request(); made.method = 'GET'",
        "same = request; same.method = 'GET'",
        "def inner():\n        request.method = 'GET'",
    ],
)
def test_an_assignment_is_found(body: str) -> None:
    text = f"def handler(self, request: S3Request, other: 'S3Request | None'):\n    {body}\n"
    assert len(assignments(text)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "request.key = 'k'",
        "response.headers['range'] = ''",
        "headers = dict(request.headers); headers.pop('range')",
        "headers = request.headers; headers = {}; headers.pop('range')",
        "method = request.method",
        "self.method = 'GET'",
    ],
)
def test_nothing_else_is_found(body: str) -> None:
    assert assignments(f"def handler(self, request: S3Request):\n    {body}\n") == []
