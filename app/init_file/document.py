"""The init file as a model: a TOML file whose unknown names and broken references are refused."""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError, model_validator

from sluice_s3.app.access.account_input import AccessKey, Id, SecretKey
from sluice_s3.app.access.policy.managed import MANAGED
from sluice_s3.app.init_file.changes import InitError
from sluice_s3.app.private_files import check_given
from sluice_s3.app.s3.wire.target import is_bucket_name
from sluice_s3.app.store.quotas import MAX_QUOTA

Policy = str | dict[str, Any]
"""The path of a JSON file, relative to the init file, or the policy itself."""
_SECRET = TypeAdapter(SecretKey)
_MANAGED_NAMES = {arn.rpartition("/")[2]: arn for arn in MANAGED}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is most alike; empty without one."""
    similar = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {similar[0]!r}?)" if similar else ""


class Given(BaseModel):
    """A table of the file. Unknown names are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, value: Any) -> Any:
        for name in value if isinstance(value, dict) else ():
            if name not in cls.model_fields:
                raise ValueError(f"there is no key {name!r}{suggestion(name, cls.model_fields)}")
        return value


class Key(Given):
    """An access key; its secret is in a file or in a variable of the environment, or here."""

    access_key: AccessKey
    secret_key: SecretKey | None = None
    secret_key_file: Path | None = None
    secret_key_env: str | None = None
    disabled: bool | None = None

    @model_validator(mode="after")
    def _check(self) -> Key:
        if sum(one is not None for one in (self.secret_key, self.secret_key_file, self.secret_key_env)) != 1:
            raise ValueError("give one of secret_key_file, secret_key_env and secret_key")
        return self

    def secret(self, directory: Path) -> str:
        """Return the secret. Raises InitError."""
        if self.secret_key is not None:
            return self.secret_key.get_secret_value()
        if self.secret_key_file is not None:
            found, source = _read_text(directory / self.secret_key_file).strip(), str(self.secret_key_file)
        else:
            source = self.secret_key_env or ""
            found = os.environ.get(source, "")
        try:
            return _SECRET.validate_python(SecretStr(found)).get_secret_value()
        except ValidationError:
            why = "is missing, or has fewer than 8 or more than 256 characters"
            raise InitError(f"the secret of {self.access_key} in {source} {why}") from None


class Group(Given):
    """A group of users."""

    path: str | None = None
    policies: list[str] = []


class User(Group):
    """A user of an account."""

    groups: list[str] = []
    keys: list[Key] = []


class Members(Given):
    """Users and groups of one account."""

    users: dict[str, User] = {}
    groups: dict[str, Group] = {}


class Account(Members):
    """An account; a missing one is made with its first key."""

    id: Id | None = Field(None, description="Canonical id; without it one that follows from the name.")
    disabled: bool | None = None
    keys: Annotated[list[Key], Field(min_length=1)]


class Quota(Given):
    """What a bucket may hold; what is left out is not limited."""

    bytes: int | None = Field(None, ge=0, le=MAX_QUOTA)
    objects: int | None = Field(None, ge=0, le=MAX_QUOTA)


class Retention(Given):
    """A default retention of object lock, by AWS's names."""

    Mode: Literal["GOVERNANCE", "COMPLIANCE"]
    Days: int | None = None
    Years: int | None = None


class Encryption(Given):
    """Default encryption with a key, by AWS's names."""

    SSEAlgorithm: Literal["AES256", "aws:kms"]
    KMSMasterKeyID: str | None = None


class Block(Given):
    """A public access block, by AWS's names."""

    BlockPublicAcls: bool = False
    IgnorePublicAcls: bool = False
    BlockPublicPolicy: bool = False
    RestrictPublicBuckets: bool = False


class BucketIn(Given):
    """A bucket with its settings; those left out stay as they are."""

    account: str | None = Field(None, description="A name of `accounts`; without it the first account.")
    store: str | None = None
    versioning: Literal["Enabled", "Suspended"] | None = None
    object_lock: Literal[True] | Retention | None = None
    ownership: Literal["BucketOwnerEnforced", "BucketOwnerPreferred", "ObjectWriter"] | None = None
    public_access_block: bool | Block | None = None
    encryption: Literal["AES256", "aws:kms"] | Encryption | None = None
    tags: dict[str, str] | None = None
    quota: Quota | None = None
    lifecycle: list[dict[str, Any]] | None = None
    cors: list[dict[str, Any]] | None = None
    policy: Policy | None = None


class Document(Members):
    """The whole file; its own users and groups are those of the first account."""

    policies: dict[str, Policy] = {}
    accounts: dict[str, Account] = {}
    buckets: dict[str, BucketIn] = {}

    def iterate_keys(self) -> Iterator[Key]:
        """Yield all access keys of accounts and users."""
        for account in self.accounts.values():
            yield from account.keys
        for users in (self.users, *(account.users for account in self.accounts.values())):
            for user in users.values():
                yield from user.keys

    @model_validator(mode="after")
    def _check_references(self) -> Document:
        for name, bucket in self.buckets.items():
            if not is_bucket_name(name):
                raise ValueError(f"buckets: {name!r} is no bucket name")
            if bucket.account is not None and bucket.account not in self.accounts:
                hint = suggestion(bucket.account, self.accounts)
                raise ValueError(f"buckets.{name}.account: there is no {bucket.account!r} in accounts{hint}")
        members: list[Members] = [self, *self.accounts.values()]
        for holder in members:
            for name, one in (*holder.users.items(), *holder.groups.items()):
                for policy in one.policies:
                    self._check_policy(f"{name}.policies", policy)
        keys = [key.access_key for key in self.iterate_keys()]
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise ValueError(f"the access key {twice} is there twice")
        return self

    def _check_policy(self, where: str, policy: str) -> None:
        if policy not in self.policies and managed_arn(policy) is None:
            hint = suggestion(policy, (*self.policies, *_MANAGED_NAMES))
            raise ValueError(f"{where}: there is no {policy!r} in policies{hint}")


def managed_arn(policy: str) -> str | None:
    """Return the ARN of an AWS policy from its name or ARN; None if there is no such one."""
    return policy if policy in MANAGED else _MANAGED_NAMES.get(policy)


def policy_text(policy: Policy, directory: Path) -> str:
    """Return the text of a policy. Raises InitError."""
    return _read_text(directory / policy) if isinstance(policy, str) else json.dumps(policy)


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            check_given(file.fileno(), path)
            return file.read().decode()
    except OSError as error:
        raise InitError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InitError(f"{path}: it is no text") from None


def read_init_file(path: Path) -> Document:
    """Read and check an init file, its secrets and policies too. Raises InitError."""
    try:
        found = tomllib.loads(_read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InitError(f"{path}: {error}") from None
    try:
        document = Document.model_validate(found)
    except ValidationError as error:
        raise InitError("; ".join(_fault(path, one) for one in error.errors(include_url=False))) from None
    for key in document.iterate_keys():
        key.secret(path.parent)
    policies = [*document.policies.values(), *(one.policy for one in document.buckets.values() if one.policy)]
    for policy in policies:
        try:
            json.loads(policy_text(policy, path.parent))
        except ValueError as error:
            raise InitError(f"{path.parent / str(policy)}: {error}") from None
    return document


def _fault(path: Path, fault: Any) -> str:
    where = ".".join(str(one) for one in fault["loc"] if one not in ("Retention", "Encryption", "Block"))
    return f"{path}: {where + ': ' if where else ''}{fault['msg'].removeprefix('Value error, ')}"
