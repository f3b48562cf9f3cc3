"""Times in requests: ISO 8601 basic (signatures) and the three forms of HTTP. All in whole seconds."""

from __future__ import annotations

import calendar
import math
import re
import time
from datetime import UTC, datetime
from email.utils import formatdate
from functools import lru_cache

_MONTHS = {name: number for number, name in enumerate(
    ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1)}  # fmt: skip
_BASIC = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z")
_TIME = r"([0-9]{2}):([0-9]{2}):([0-9]{2})"
_IMF_FIXDATE = re.compile(
    rf"[A-Z][a-z]{{2}}, ([0-9]{{1,2}}) ([A-Z][a-z]{{2}}) ([0-9]{{4}}) {_TIME} (?:GMT|UTC|[+-]0000)"
)
_RFC850 = re.compile(rf"[A-Z][a-z]{{5,8}}, ([0-9]{{2}})-([A-Z][a-z]{{2}})-([0-9]{{2}}) {_TIME} GMT")
_ASCTIME = re.compile(rf"[A-Z][a-z]{{2}} ([A-Z][a-z]{{2}}) ([ 0-9][0-9]) {_TIME} ([0-9]{{4}})")


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    # datetime checks the fields; a leap second counts as the second before it
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59) if second == 60 else second, tzinfo=UTC)
    except ValueError:
        return None
    return calendar.timegm(moment.utctimetuple())


@lru_cache(maxsize=256)
def parse_basic(text: str) -> int | None:
    """Return seconds since the epoch of `YYYYMMDDTHHMMSSZ`, or None."""
    match = _BASIC.fullmatch(text)
    return _seconds(*map(int, match.groups())) if match else None


def format_basic(seconds: float) -> str:
    """Return `YYYYMMDDTHHMMSSZ`."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def format_extended(seconds: float) -> str:
    """Return `YYYY-MM-DDTHH:MM:SSZ`, the form of the times in S3's errors."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def parse_http(text: str) -> int | None:
    """Return seconds since the epoch of an HTTP date, or None.

    The date has any of the three forms of RFC 9110 §5.6.7. Two-digit years count as in that section: more than 50 years
    ahead means the century before.
    """
    text = text.strip()
    if match := _IMF_FIXDATE.fullmatch(text):
        day, month, year, hour, minute, second = match.groups()
    elif match := _RFC850.fullmatch(text):
        day, month, year, hour, minute, second = match.groups()
        this_year = time.gmtime().tm_year
        full = this_year - this_year % 100 + int(year)
        year = str(full - 100 if full > this_year + 50 else full)
    elif match := _ASCTIME.fullmatch(text):
        month, day, hour, minute, second, year = match.groups()
    else:
        return None
    if month not in _MONTHS:
        return None
    return _seconds(int(year), _MONTHS[month], int(day), int(hour), int(minute), int(second))


@lru_cache(maxsize=1024)
def http_date(seconds: int) -> str:
    """Return the form of HTTP, `Sun, 06 Nov 1994 08:49:37 GMT`, as in Last-Modified."""
    return formatdate(seconds, usegmt=True)


def parse_iso(text: str) -> int | None:
    """Return seconds since the epoch of an ISO 8601 time with zone, or None."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return None if moment.tzinfo is None else math.floor(moment.timestamp())
