"""Users, roles and sessions that policies name: kept by their unique ids, shown by their ARNs.

Who is made anew under a deleted one's name is somebody else: an ARN becomes the id (`AIDA…`, `AROA…`, a session's
`AROA…:NAME`) when the policy is put, and is shown again as the ARN as long as there is one of that id ("AWS JSON policy
elements: Principal", IAM User Guide). All else in the text stays as it was put. Policies that were kept before this was
so name them by ARNs, until put again.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.access.account import account_number, arn_of, session_arn
from app.access.policy.malformed import UnknownPrincipal
from app.access.policy.names import names, replaced
from app.access.policy.principals import ARN_START, SESSION_START, UNIQUE, UNIQUE_SESSION
from app.index import Index
from app.index.identity_rows import ROLE, USER, Identity

NAMING = {f":{kind}/": kind for kind in (USER, ROLE)}


async def bound(index: Index, text: str, account_id: str = "") -> str:
    """The text of a policy of a bucket or of a role's trust, which was parsed, as it is to be kept.

    `account_id` is an account that there is. Raises UnknownPrincipal for a user, a role, a role's session or
    an id that there is none of, and for an account that is named by a number of 12 digits or a canonical id.
    """
    ids: dict[str, str] = {}
    numbers = {account_number(account_id)} if account_id else set()
    for kind, name in _named(text):
        if name in ids:
            continue
        if kind == "CanonicalUser":
            if name != account_id and await index.account(name) is None:
                raise UnknownPrincipal(kind, name)
        elif (one := await _id_of(index, name)) is not None:
            ids[name] = one
        elif _is_identity(name):
            raise UnknownPrincipal(kind, name)
        elif (number := _number(name)) and number not in numbers:
            numbers |= {account_number(account.id) for account, _ in await index.accounts()}
            if number not in numbers:
                raise UnknownPrincipal(kind, name)
    return replaced(text, ids)


async def shown(index: Index, text: str) -> str:
    """The text of a kept policy as its owner sees it: ids of who is there no more stay."""
    if "AIDA" not in text and "AROA" not in text:
        return text
    try:
        kept = {name for _, name in _named(text)}
    except ValueError:  # damaged: access is closed, and its owner may see why
        return text
    arns: dict[str, str] = {}
    for name in kept:
        if not _is_identity(name) or name.startswith("arn:"):
            continue
        unique, _, session = name.partition(":")
        one = await index.identity_of_id(unique)
        if one is not None:
            arns[name] = session_arn(one, session) if session else arn_of(one)
    return replaced(text, arns)


async def by_arn(index: Index, arn: str) -> Identity | None:
    """The user or role of an ARN, in whatever account."""
    kind = next((kind for sign, kind in NAMING.items() if sign in arn), "")
    for found in await index.identities_named(kind, arn.rpartition("/")[2]):
        if arn_of(found) == arn:
            return found
    return None


async def _id_of(index: Index, name: str) -> str | None:
    """What is kept of a user, a role or a session; None when it is none, or there is none."""
    if name.startswith(SESSION_START):
        role_name, _, session = name.removeprefix(SESSION_START).partition(":assumed-role/")[2].partition("/")
        for role in await index.identities_named(ROLE, role_name):
            if session_arn(role, session) == name:
                return f"{role.id}:{session}"
        return None
    if name.startswith(ARN_START):
        found = await by_arn(index, name)
        return None if found is None else found.id
    if _is_identity(name):
        return None if await index.identity_of_id(name.partition(":")[0]) is None else name
    return None


def _is_identity(name: str) -> bool:
    if name.startswith("arn:"):
        # the sessions of federation never ask here, and are nobody's that could be made anew
        return any(sign in name for sign in (*NAMING, ":assumed-role/"))
    return UNIQUE.fullmatch(name) is not None or UNIQUE_SESSION.fullmatch(name) is not None


def _number(name: str) -> str:
    """The number of 12 digits that names an account, empty for another name: those are not AWS's."""
    account = name.removeprefix(ARN_START).removesuffix(":root")
    return account if len(account) == 12 and account.isdigit() else ""


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Every principal of a policy that was parsed, with its kind, but for services and everybody."""
    for kind, name, _, _ in names(text):
        if kind in ("AWS", "CanonicalUser") and name != "*":
            yield kind, name
