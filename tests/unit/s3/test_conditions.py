"""Conditional reads as RFC 9110 §13.2.2 and S3 decide them, and the conditions of writes."""

from __future__ import annotations

import pytest

from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.s3 import errors
from sluice_s3.app.s3.wire import conditions
from sluice_s3.app.s3.wire.conditions import check_copy_source, check_read
from tests.unit.s3.signing.signed_requests import make

ETAG = "d41d8cd98f00b204e9800998ecf8427e"
MODIFIED = 784_111_777_500  # 08:49:37.5
AT = "Sun, 06 Nov 1994 08:49:37 GMT"
BEFORE = "Sun, 06 Nov 1994 08:49:36 GMT"
AFTER = "Sun, 06 Nov 1994 08:49:38 GMT"
FUTURE = "Sun, 06 Nov 2994 08:49:38 GMT"
NOW = 784_200_000.0

YES = [f'"{ETAG}"', ETAG, "*", f'"x", "{ETAG}"', f' "{ETAG}" ', f'"x","y",{ETAG}']
NO = ['"x"', "x", "", f'"{ETAG}x"', '"x", "y"', f"'{ETAG}'"]


def outcome(**headers: str) -> int:
    """200, 304 or 412."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        return 304 if check_read(names, ETAG, MODIFIED, now=NOW) else 200
    except errors.PreconditionFailed as error:
        return 412 if error.extra["Condition"].lower() in names else 0


def test_without_conditions() -> None:
    assert outcome() == 200


@pytest.mark.parametrize("value", YES)
def test_etags_that_match(value: str) -> None:
    assert outcome(if_match=value) == 200
    assert outcome(if_none_match=value) == 304


@pytest.mark.parametrize("value", NO)
def test_etags_that_do_not_match(value: str) -> None:
    assert outcome(if_match=value) == 412
    assert outcome(if_none_match=value) == 200


def test_a_weak_etag_matches_only_if_none_match() -> None:
    assert outcome(if_none_match=f'W/"{ETAG}"') == 304
    assert outcome(if_match=f'W/"{ETAG}"') == 412


@pytest.mark.parametrize(
    ("date", "modified_since", "unmodified_since"),
    [(AT, 304, 200), (AFTER, 304, 200), (BEFORE, 200, 412), (FUTURE, 200, 200), ("garbage", 200, 200), ("", 200, 200),
     ("Sunday, 06-Nov-94 08:49:37 GMT", 304, 200), ("Sun Nov  6 08:49:36 1994", 200, 412)],
)  # fmt: skip
def test_dates(date: str, modified_since: int, unmodified_since: int) -> None:
    assert outcome(if_modified_since=date) == modified_since
    assert outcome(if_unmodified_since=date) == unmodified_since


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"if_match": ETAG, "if_unmodified_since": BEFORE}, 200),
        ({"if_match": "x", "if_unmodified_since": AFTER}, 412),
        ({"if_none_match": "x", "if_modified_since": AFTER}, 200),
        ({"if_none_match": ETAG, "if_modified_since": BEFORE}, 304),
        ({"if_match": ETAG, "if_none_match": ETAG}, 304),
        ({"if_match": "x", "if_none_match": ETAG}, 412),
        ({"if_unmodified_since": BEFORE, "if_none_match": ETAG}, 412),
        ({"if_unmodified_since": AFTER, "if_modified_since": AFTER}, 304),
        ({"if_match": ETAG, "if_modified_since": AFTER}, 304),
    ],
)
def test_precedence(headers: dict[str, str], expected: int) -> None:
    assert outcome(**headers) == expected


def test_the_clock_is_the_default_now() -> None:
    assert check_read({"if-modified-since": AFTER}, ETAG, MODIFIED) is True
    assert check_read({"if-modified-since": FUTURE}, ETAG, MODIFIED) is False


def test_the_future_ends_after_the_year_2000() -> None:
    assert outcome(if_modified_since="Sat, 01 Jan 2000 00:00:00 GMT") == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [("if-match", "x"), ("if-none-match", ETAG), ("if-none-match", "*"), ("if-modified-since", AT),
     ("if-unmodified-since", BEFORE)],
)  # fmt: skip
def test_every_failed_condition_of_a_copy_source_is_412(name: str, value: str) -> None:
    with pytest.raises(errors.PreconditionFailed):
        check_copy_source({"x-amz-copy-source-" + name: value}, ETAG, MODIFIED, now=NOW)


def test_a_copy_source_has_conditions_of_its_own() -> None:
    check_copy_source({"if-match": "x", "if-none-match": ETAG}, ETAG, MODIFIED, now=NOW)
    check_copy_source({"x-amz-copy-source-if-match": ETAG, "x-amz-copy-source-if-unmodified-since": BEFORE},
                      ETAG, MODIFIED, now=NOW)  # fmt: skip
    assert not check_read({"x-amz-copy-source-if-match": "x"}, ETAG, MODIFIED, now=NOW)


def of(**headers: str) -> Conditions:
    return conditions.write_conditions(make("PUT", headers={n.replace("_", "-"): v for n, v in headers.items()}))


def test_conditions_of_writes() -> None:
    assert of() == Conditions()
    assert of(if_match=f'"{ETAG}"') == Conditions(if_match=ETAG)
    assert of(if_match=ETAG) == Conditions(if_match=ETAG)
    assert of(if_match="*") == Conditions(if_match="*")
    assert of(if_none_match="*") == Conditions(if_none_match=True)
    assert of(x_amz_if_match_size="0") == Conditions(if_match_size=0)
    for date in (AT, "1994-11-06T08:49:37Z"):
        assert of(x_amz_if_match_last_modified_time=date) == Conditions(if_match_modified=784_111_777_000)


def test_a_weak_etag_of_a_write_matches_nothing() -> None:
    assert of(if_match=f'W/"{ETAG}"').if_match not in (ETAG, "*")


@pytest.mark.parametrize(
    "headers",
    [{"if_none_match": ETAG}, {"if_none_match": ""}, {"if_none_match": "*, x"}, {"if_match": "a, b"},
     {"if_modified_since": AT}, {"if_unmodified_since": AT}],
)  # fmt: skip
def test_forms_that_writes_have_not(headers: dict[str, str]) -> None:
    with pytest.raises(errors.NotImplemented):
        of(**headers)


@pytest.mark.parametrize(
    "headers",
    [{"x_amz_if_match_size": value} for value in ("", "-1", "x", "1.5", "\xb2", "9" * 19)]
    + [{"x_amz_if_match_last_modified_time": value} for value in ("", "x", "1994-11-06")],
)
def test_values_that_are_none(headers: dict[str, str]) -> None:
    with pytest.raises(errors.InvalidArgument):
        of(**headers)
