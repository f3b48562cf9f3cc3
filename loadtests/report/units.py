"""Numbers as people read them."""

from __future__ import annotations

import re

KILO = 1000.0


def significant(value: float, digits: int = 3) -> str:
    """Render `1234` → 1,234; `12.345` → 12.3; `0.01234` → 0.0123; never with an exponent."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:,.{max(0, digits - 1 - exponent)}f}"


def trim_zeros(text: str) -> str:
    """Drop trailing zeros for an axis: `2.50 ms` → 2.5 ms, `50.0` → 50."""
    return re.sub(r"(\.\d*?)0+(?=\D|$)", lambda found: found[1].removesuffix("."), text)


def seconds(value: float | None) -> str:
    """Render `0.00057` → 0.570 ms; empty for None."""
    if not value:
        return "" if value is None else "0"
    if value < 0.001:
        return f"{significant(value * 1e6)} µs"
    return f"{significant(value * 1e3)} ms" if value < 1 else f"{significant(value)} s"


def size(value: float) -> str:
    """Render `100000` → 100 KB, `10485760` → 10 MiB.

    The unit is one that makes the number whole, else the decimal one.
    """
    whole = int(value)
    for power, name in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        binary = (
            whole and whole % 1024**power == 0 and whole < 1024 ** (power + 2)
        )  # 10 GB is a whole number of KiB as well
        if binary and (whole % 1000 or whole >= 1000 * 1024**power):
            return f"{whole // 1024**power:,} {name}"
    return decimal(value)


def decimal(value: float) -> str:
    """Render `1234567` → 1.23 MB."""
    for power, name in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "KB")):
        if value >= KILO**power:
            number = value / KILO**power
            return f"{number:g} {name}" if number == round(number, 1) else f"{significant(number)} {name}"
    return f"{significant(value) if value % 1 else int(value)} B"


def megabytes(value: float) -> str:
    """Render bytes a second in MB/s, without the unit."""
    return significant(value / 1e6)


def mebibytes(value: float) -> str:
    """Render bytes a second in MiB/s, without the unit."""
    return significant(value / 2**20)


def percent(share: float, *, sign: bool = False) -> str:
    """Render `0.1234` → 12 %, `0.01234` → 1.2 %."""
    number = share * 100
    digits = 1 if abs(number) < 9.95 else 0
    return f"{number:+,.{digits}f} %" if sign else f"{number:,.{digits}f} %"


def times(ratio: float) -> str:
    """Render `1.345` → 1.35x."""
    return f"{significant(ratio)}x" if ratio < 1000 else f"{ratio:,.0f}x"


def both_seconds(first: float, second: float) -> str:
    """Render two times as `8.10 / 23.0 ms`, with one unit if it is the same, and unbroken."""
    texts = seconds(first), seconds(second)
    number, _, unit = texts[0].partition(" ")
    words = f"{number if unit == texts[1].partition(' ')[2] else texts[0]} / {texts[1]}"
    return words.replace(" ", "\u00a0")


def dollars(value: float) -> str:
    """Render `1234.5` → $1,234; `0.0123` → $0.0123."""
    return f"${value:,.0f}" if value >= 1000 else f"${value:,.2f}" if value >= 1 else f"${significant(value, 2)}"
