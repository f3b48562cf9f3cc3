from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.s3.wire import dates

MOMENT = 784111777  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    "text",
    ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
     "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000"],
)  # fmt: skip
def test_the_three_forms_of_http(text: str) -> None:
    assert dates.parse_http(text) == MOMENT


@pytest.mark.parametrize(
    "text",
    ["", "now", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37", "Sun, 31 Feb 1994 08:49:37 GMT",
     "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 PST", "784111777"],
)  # fmt: skip
def test_what_is_no_http_date(text: str) -> None:
    assert dates.parse_http(text) is None


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)))
def test_http_dates_go_round(moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC, microsecond=0)
    text = format_datetime(moment, usegmt=True)
    seconds = dates.parse_http(text)
    assert seconds == int(moment.timestamp())
    assert dates.http_date(seconds) == text


def test_two_digit_years_are_at_most_fifty_years_ahead() -> None:
    this_year = datetime.now(UTC).year
    near, far = (this_year + 49) % 100, (this_year + 51) % 100

    def in_year(year: int) -> int:
        seconds = dates.parse_http(f"Sunday, 06-Nov-{year:02} 08:49:37 GMT")
        assert seconds is not None
        return datetime.fromtimestamp(seconds, UTC).year

    assert in_year(near) == this_year + 49
    assert in_year(far) == this_year - 49


@pytest.mark.parametrize("text", ["1994-11-06T08:49:37Z", "1994-11-06T08:49:37.9Z", "1994-11-06T09:49:37+01:00"])
def test_iso_dates(text: str) -> None:
    assert dates.parse_iso(text) == MOMENT


@pytest.mark.parametrize("text", ["", "1994-11-06T08:49:37", "1994-11-06", "x"])
def test_what_is_no_iso_date_with_a_zone(text: str) -> None:
    assert dates.parse_iso(text) is None


def test_basic_and_extended_forms() -> None:
    assert dates.format_basic(MOMENT) == "19941106T084937Z"
    assert dates.parse_basic("19941106T084937Z") == MOMENT
    assert dates.format_extended(MOMENT) == "1994-11-06T08:49:37Z"
    for text in ("19941106T084937", "19941306T084937Z", "19941106 084937Z", "1994110\uff16T084937Z"):
        assert dates.parse_basic(text) is None
