"""Bucket policies once more, as slowly and plainly as they can be told, to hold the real evaluator to.

Works on the JSON itself. Patterns are matched by dynamic programming over sets of places, dates by `datetime`, networks
by trying the text of every bit. Nothing of the evaluator is used but the names of the actions.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from sluice_s3.app.access.policy.actions import KNOWN

Context = Mapping[str, list[str]]
STAR, ONE = object(), object()


class NoMeaning(Exception):
    """A variable has no value."""


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def fill(text: str, context: Context, version: str) -> list[Any]:
    """The characters of a text, `STAR` and `ONE` among them; raises NoMeaning."""
    found: list[Any] = []
    while text:
        if version == "2012-10-17" and text.startswith("${"):
            inner, text = text[2:].split("}", 1)
            found += variable(inner, context)
        else:
            sign, text = text[0], text[1:]
            found.append({"*": STAR, "?": ONE}.get(sign, sign))
    return found


def variable(inner: str, context: Context) -> list[Any]:
    if inner in ("*", "?", "$"):
        return [inner]
    key, comma, default = inner.partition(",")
    values = context.get(key.strip().lower(), [])
    if len(values) == 1:
        return list(values[0])
    if not comma:
        raise NoMeaning
    return list(default.strip()[1:-1].replace("''", "'"))


def like(signs: list[Any], text: str) -> bool:
    places = {0}
    for sign in signs:
        if sign is STAR:
            places = set(range(min(places), len(text) + 1)) if places else set()
        else:
            places = {place + 1 for place in places if place < len(text) and (sign is ONE or sign == text[place])}
    return len(text) in places


def plain(signs: list[Any]) -> str:
    return "".join({STAR: "*", ONE: "?"}.get(sign, sign) for sign in signs)


def split_arn(signs: list[Any]) -> list[list[Any]]:
    parts: list[list[Any]] = [[]]
    for sign in signs:
        if sign == ":" and len(parts) < 6:
            parts.append([])
        else:
            parts[-1].append(sign)
    return parts


def like_arn(signs: list[Any], text: str) -> bool:
    if signs == [STAR]:
        return text.count(":") >= 5
    parts = split_arn(signs)
    texts = text.split(":", 5)
    return len(parts) == len(texts) == 6 and all(map(like, parts, texts))


def decimal(text: str) -> Fraction:
    """A number without an exponent."""
    if "e" in text:
        raise ValueError(text)
    return Fraction(text)


def seconds(text: str) -> Fraction:
    if re.fullmatch(r"\d{4}", text):
        text += "-01-01"
    elif re.fullmatch(r"[-+]?\d+(\.\d+)?", text):
        return Fraction(text)
    found = datetime.datetime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=datetime.UTC)
    return Fraction(found.timestamp())


def bits(text: str) -> tuple[str, int]:
    address, _, length = text.partition("/")
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped and (not length or int(length) >= 96):
        return bits(str(found.ipv4_mapped) + (f"/{int(length) - 96}" if length else ""))
    width = 32 if found.version == 4 else 128
    return f"{found.version}:{int(found):0{width}b}", 2 + int(length or width)


def in_network(value: str, wanted: str) -> bool:
    (address, long), (network, length) = bits(value), bits(wanted)
    return long >= length and address[:length] == network[:length]


def compare(operator: str, value: str, wanted: str, context: Context, version: str) -> bool:
    """Whether one value matches one wanted value by an operator that is not negated; raises NoMeaning."""
    if operator.startswith(("String", "Arn")):
        signs = fill(wanted, context, version)
        if operator.startswith("Arn"):
            return like_arn(signs, value)
        if operator == "StringLike":
            return like(signs, value)
        if operator == "StringEqualsIgnoreCase":
            return plain(signs).lower() == value.lower()
        return plain(signs) == value
    try:
        if operator == "IpAddress":
            return in_network(value, wanted)
        if operator == "Bool":
            return value.lower() in ("true", "false") and value.lower() == wanted.lower()
        if operator == "BinaryEquals":
            return base64.b64encode(value.encode()) == wanted.encode()
        found, limit = map(decimal if operator.startswith("Numeric") else seconds, (value, wanted))
    except ValueError:
        return False
    return {
        "Equals": found == limit,
        "LessThan": found < limit,
        "LessThanEquals": found <= limit,
        "GreaterThan": found > limit,
        "GreaterThanEquals": found >= limit,
    }[operator.removeprefix("Numeric").removeprefix("Date")]


NEGATED = {
    "StringNotEquals": "StringEquals",
    "StringNotEqualsIgnoreCase": "StringEqualsIgnoreCase",
    "StringNotLike": "StringLike",
    "NumericNotEquals": "NumericEquals",
    "DateNotEquals": "DateEquals",
    "NotIpAddress": "IpAddress",
    "ArnNotEquals": "ArnEquals",
    "ArnNotLike": "ArnLike",
}


def matches_any(operator: str, value: str, wanted: list[str], context: Context, version: str) -> bool | None:
    """True: one matches; None: none does, but one has no meaning; False: none does."""
    answer: bool | None = False
    for one in wanted:
        try:
            if compare(operator, value, one, context, version):
                return True
        except NoMeaning:
            answer = None
    return answer


def condition_holds(name: str, key: str, wanted: list[str], context: Context, version: str, effect: str) -> bool:
    values = context.get(key.lower(), [])
    if name == "Null":
        return any((one.lower() == "true") == (not values) for one in wanted)
    quantifier, colon, rest = name.partition(":")
    rest = rest if colon else name
    if_exists = rest.endswith("IfExists")
    base = rest[: -len("IfExists")] if if_exists else rest
    negated = base in NEGATED
    if not values:
        if colon:
            return quantifier == "ForAllValues"
        return negated or if_exists
    answers = [matches_any(NEGATED.get(base, base), value, wanted, context, version) for value in values]
    if negated and effect == "Allow" and None in answers:
        return False
    each = [not answer if negated else bool(answer) for answer in answers]
    if quantifier == "ForAllValues":
        return all(each)
    if quantifier == "ForAnyValue":
        return any(each)
    return all(each) if negated else any(each)


def principal_matches(principal: Any, caller: Mapping[str, str] | None) -> bool:
    if principal == "*" or "*" in listed(principal.get("AWS", [])):
        return True
    if caller is None:
        return False
    named = {caller["arn"], caller.get("role"), caller.get("id"), session_id(caller)} - {None}
    return names_account(principal, caller) or not named.isdisjoint(listed(principal.get("AWS", [])))


def names_account(principal: Any, caller: Mapping[str, str]) -> bool:
    account = {
        caller["account"],
        caller["canonical"],
        f"arn:aws:iam::{caller['account']}:root",
        f"arn:aws:iam::{caller['canonical']}:root",
    } - {""}
    return not account.isdisjoint(listed(principal.get("AWS", []))) or caller["canonical"] in listed(
        principal.get("CanonicalUser", [])
    )


def passed_over(principal: Any, caller: Mapping[str, str] | None) -> bool:
    """Whether NotPrincipal names everything that a caller is."""
    if principal == "*" or "*" in listed(principal.get("AWS", [])):
        return True
    if caller is None or not names_account(principal, caller):
        return False
    named = listed(principal.get("AWS", []))
    if "id" not in caller:
        return True
    if "role" not in caller:
        return caller["id"] in named or caller["arn"] in named
    of_role = caller["id"] in named or caller["role"] in named
    return of_role and (session_id(caller) in named or caller["arn"] in named)


def session_id(caller: Mapping[str, str]) -> str | None:
    """How policies are kept that name a session of a role."""
    return caller["id"] + ":" + caller["arn"].split("/")[-1] if "role" in caller else None


def names_action(texts: Any, action: str) -> bool:
    assert action in KNOWN
    return any(like(fill(text.lower(), {}, ""), action.lower()) for text in listed(texts))


def statement_applies(statement: Any, asked: Mapping[str, Any], version: str) -> bool:
    context, effect = asked["context"], statement["Effect"]
    if "Principal" in statement:
        if not principal_matches(statement["Principal"], asked["caller"]):
            return False
    elif "NotPrincipal" in statement and passed_over(statement["NotPrincipal"], asked["caller"]):
        return False
    if "Action" in statement:
        if not names_action(statement["Action"], asked["action"]):
            return False
    elif names_action(statement["NotAction"], asked["action"]):
        return False
    named, meaningless = False, False
    for text in listed(statement.get("Resource", statement.get("NotResource"))):
        try:
            named = named or like(fill(text, context, version), "arn:aws:s3:::" + asked["resource"])
        except NoMeaning:
            meaningless = True
    if "Resource" in statement:
        if not named:
            return False
    elif named or (meaningless and effect == "Allow"):
        return False
    return all(
        condition_holds(name, key, listed(wanted), context, version, effect)
        for name, tests in statement.get("Condition", {}).items()
        for key, wanted in tests.items()
    )


def decide(policy: Any, asked: Mapping[str, Any]) -> str:
    """`deny`, `allow` or `silent`."""
    version = policy.get("Version", "2008-10-17")
    applying = [s["Effect"] for s in listed(policy["Statement"]) if statement_applies(s, asked, version)]
    return "deny" if "Deny" in applying else "allow" if "Allow" in applying else "silent"
