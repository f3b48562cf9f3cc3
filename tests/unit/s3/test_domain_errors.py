"""Every domain error has an S3 answer, and none shows more than it may."""

from __future__ import annotations

import pytest

from sluice_s3.app import errors
from sluice_s3.app.s3.errors import AccessDenied, InternalError, S3Error
from sluice_s3.app.s3.errors.from_domain import to_s3_error


def all_below(base: type[errors.DomainError]) -> list[type[errors.DomainError]]:
    every = [found for child in base.__subclasses__() for found in (child, *all_below(child))]
    return [found for found in every if found.__module__ == errors.__name__]  # others stay in the room that has them


# decided before an answer is made: the command line's, those after which the store looks again, what ends a job, and
# those of `app.access.iam.errors`
NOT_ANSWERED = {
    errors.AccountExists,
    errors.NoSuchAccount,
    errors.IdentityExists,
    errors.NoSuchIdentity,
    errors.IdentityInUse,
    errors.TooManyIdentities,
    errors.BucketBusy,
    errors.SourceGone,
    errors.KeyBusy,
    errors.LeaseLost,
}


@pytest.mark.parametrize("kind", [kind for kind in all_below(errors.DomainError) if kind not in NOT_ANSWERED])
def test_each_has_an_answer(kind: type[errors.DomainError]) -> None:
    answer = to_s3_error(kind(key="k", path="/secret/path"))
    assert isinstance(answer, S3Error)
    assert not isinstance(answer, InternalError)
    assert "/secret/" not in f"{answer.text} {answer.extra}"
    if answer.status < 500:
        assert answer.extra == {"Key": "k"}
    else:
        assert answer.extra == {}


def test_other_exceptions() -> None:
    """An S3 error is its own answer; what nobody foresaw shows nothing of itself."""
    denied = AccessDenied(Key="k")
    assert to_s3_error(denied) is denied
    unforeseen = to_s3_error(ValueError("/secret/path"))
    assert type(unforeseen) is InternalError
    assert "/secret/" not in f"{unforeseen.text} {unforeseen.extra}"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_lack_of_memory_or_threads_is_answered_with_slow_down(error: Exception) -> None:
    assert to_s3_error(error).code == "SlowDown"
    assert to_s3_error(RuntimeError("anything else")).code == "InternalError"
