"""Principals are found in the text of a policy where they are found in what is parsed from it."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from sluice_s3.app.access.policy.names import iterate_principals, replace_principals

TEXTS = ("a", "*", 'q"u', "\\", "{", "}]", 'x":', "Principal", "AWS", "Statement", "é", "\n", "")
KINDS = ("AWS", "CanonicalUser", "Service")


def some(draw: random.Random, depth: int = 0) -> Any:
    """Any JSON, of fields that have a meaning elsewhere."""
    kind = draw.randrange(6 if depth < 4 else 2)
    if kind == 0:
        return draw.choice(TEXTS)
    if kind == 1:
        return draw.choice([1, -2.5, True, None, 1e300])
    if kind == 2:
        return [some(draw, depth + 1) for _ in range(draw.randrange(3))]
    return {draw.choice([*TEXTS, *KINDS, "NotPrincipal"]): some(draw, depth + 1) for _ in range(draw.randrange(3))}


def statement(draw: random.Random) -> dict[str, Any]:
    about: Any = "*"
    if draw.random() < 0.8:
        about = {
            kind: draw.choice([draw.choice(TEXTS), draw.choices(TEXTS, k=3)]) for kind in KINDS if draw.random() < 0.6
        }
    fields = [("Condition", some(draw)), ("Action", some(draw)), (draw.choice(["Principal", "NotPrincipal"]), about)]
    draw.shuffle(fields)
    return dict(fields)


@pytest.mark.parametrize("seed", range(200))
def test_names_are_found_and_replaced_where_they_stand(seed: int) -> None:
    draw = random.Random(seed)
    said = [statement(draw) for _ in range(draw.randrange(1, 4))]
    policy = {"Id": some(draw), "Statement": said if len(said) > 1 or draw.random() < 0.5 else said[0]}
    text = json.dumps(policy, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 0, 3, "\t"]))
    expected = []
    for one in said:
        about = one.get("Principal", one.get("NotPrincipal"))
        if isinstance(about, dict):
            for kind, named in about.items():
                expected += [(kind, name) for name in ([named] if isinstance(named, str) else named)]
                if kind == "AWS":
                    about[kind] = "b" if named == "a" else named
                if kind == "AWS" and isinstance(named, list):
                    about[kind] = ["b" if name == "a" else name for name in named]
    assert [found[:2] for found in iterate_principals(text)] == expected
    again = replace_principals(text, {"a": "b", "*": "*"})
    assert json.loads(again) == policy
    assert len(again) == len(text)
    assert replace_principals(text, {}) == text
