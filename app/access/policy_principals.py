"""Users, roles and sessions that policies name: stored by unique ids, rendered as ARNs.

A principal that is created under the name of a deleted one is another principal. So an ARN becomes the id (`AIDA…`,
`AROA…`, a session's `AROA…:NAME`) when the policy is put, and the ARN again when it is read, as long as the id exists
("AWS JSON policy elements: Principal", IAM User Guide). All other text stays as it was put. Older stored policies name
principals by ARNs until they are put again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sluice_s3.app.access.account import account_number, arn_of, session_arn
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.access.policy.names import iterate_principals, replace_principals
from sluice_s3.app.access.policy.principals import ARN_START, SESSION_START, UNIQUE, UNIQUE_SESSION
from sluice_s3.app.index import Index
from sluice_s3.app.index.iam.rows import ROLE, USER, Identity

ARN_KINDS = {f":{kind}/": kind for kind in (USER, ROLE)}


async def bind_principals(index: Index, text: str, account_id: str = "") -> str:
    """Return the text to store of a parsed bucket or trust policy.

    `account_id` is an account that exists. Raises UnknownPrincipal for a user, a role, a role's session or an id that
    does not exist, and for an unknown account that is named by a number of 12 digits or a canonical id.
    """
    ids: dict[str, str] = {}
    numbers = {account_number(account_id)} if account_id else set()
    for kind, name in _iterate_named(text):
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
    return replace_principals(text, ids)


async def unbind_principals(index: Index, text: str) -> str:
    """Return the text of a stored policy for its owner; ids of deleted principals stay."""
    if "AIDA" not in text and "AROA" not in text:
        return text
    try:
        principal_names = {name for _, name in _iterate_named(text)}
    except ValueError:  # damaged: access is closed, and its owner can see why
        return text
    arns: dict[str, str] = {}
    for name in principal_names:
        if not _is_identity(name) or name.startswith("arn:"):
            continue
        unique, _, session = name.partition(":")
        one = await index.identity_of_id(unique)
        if one is not None:
            arns[name] = session_arn(one, session) if session else arn_of(one)
    return replace_principals(text, arns)


async def find_identity_by_arn(index: Index, arn: str) -> Identity | None:
    """Return the user or role of an ARN, in any account. None if it does not exist."""
    kind = next((kind for sign, kind in ARN_KINDS.items() if sign in arn), "")
    for found in await index.identities_named(kind, arn.rpartition("/")[2]):
        if arn_of(found) == arn:
            return found
    return None


async def _id_of(index: Index, name: str) -> str | None:
    """Return the stored form of a user, a role or a session. None if it is none, or does not exist."""
    if name.startswith(SESSION_START):
        role_name, _, session = name.removeprefix(SESSION_START).partition(":assumed-role/")[2].partition("/")
        for role in await index.identities_named(ROLE, role_name):
            if session_arn(role, session) == name:
                return f"{role.id}:{session}"
        return None
    if name.startswith(ARN_START):
        found = await find_identity_by_arn(index, name)
        return None if found is None else found.id
    if _is_identity(name):
        return None if await index.identity_of_id(name.partition(":")[0]) is None else name
    return None


def _is_identity(name: str) -> bool:
    if name.startswith("arn:"):
        # federated sessions never call here, and nobody can create them again
        return any(sign in name for sign in (*ARN_KINDS, ":assumed-role/"))
    return UNIQUE.fullmatch(name) is not None or UNIQUE_SESSION.fullmatch(name) is not None


def _number(name: str) -> str:
    """Return the 12-digit number that names an account. Empty for other names, which are not AWS's."""
    account = name.removeprefix(ARN_START).removesuffix(":root")
    return account if len(account) == 12 and account.isdigit() else ""


def _iterate_named(text: str) -> Iterator[tuple[str, str]]:
    """Yield every principal of a parsed policy with its kind, except services and everybody."""
    for kind, name, _, _ in iterate_principals(text):
        if kind in ("AWS", "CanonicalUser") and name != "*":
            yield kind, name
