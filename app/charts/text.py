"""Formatting of figures for people, on pages, in reports and on the command line.

Numbers have three significant digits unless a caller asks for more, thousands separators, no exponent below 10¹⁸ and
no negative zero. Durations below a second are in milliseconds or microseconds, and times are in UTC. Costs carry the
currency of ``STEWARD_CURRENCY``, with two decimals from 0.10 to below 1,000, or are in “cost units” if it is empty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Literal

NOTHING = "–"
SHARE = "share"
"""Unit of shares of 1, which are written in per cent."""
MONEY = "money"
"""Unit of costs, which are written in the configured currency."""
NO_CURRENCY = "cost units"
ROUNDING = 1e-12
"""Absolute differences below this count as rounding errors."""
SMALLEST = 1e-6
LARGEST = 1e18
"""Sizes from which numbers have an exponent."""
MOST_DIGITS = 8
LONGEST = 30
CODE_LENGTH = 3
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))

_currency = ["$"]


def use_currency(name: str) -> None:
    """Set the currency of costs in this process: a sign such as “€”, a code such as “EUR”, or empty: “cost units”."""
    _currency[0] = name or NO_CURRENCY


def currency() -> str:
    """The currency of all prices in this process: a sign, a code, or “cost units”."""
    return _currency[0]


def number(value: float, digits: int = 3, *, signed: bool = False) -> str:
    """A number with ``digits`` significant digits: “0.00372”, “12.4”, “1,912”, “0”, “inf”, “nan”.

    Sizes below 1e-12 are “0”, others below 1e-6 “< 0.000001” or “> -0.000001”. ``signed``: positive numbers have a “+”.
    """
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size >= LARGEST:
        return f"{value:{'+' if signed else ''}.{digits}g}"
    if size < ROUNDING:
        return "0"
    if size < SMALLEST:
        return "< 0.000001" if value > 0 else "> -0.000001"
    places = max(digits - 1 - int(f"{size:.{digits - 1}e}".partition("e")[2]), 0)  # by the exponent of what is shown
    text = f"{value:{'+' if signed else ''},.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def exact(value: float) -> str:
    """A number with all of its digits and no separators, so that it can be entered again: “9.3591”, “1764460349.25”;
    with an exponent if it would be longer than 30 characters: “1e+100”."""
    value = float(value) or 0.0  # not -0.0
    plain = f"{Decimal(repr(value)):f}".removesuffix(".0") if math.isfinite(value) else str(value)
    return plain if len(plain) <= LONGEST else repr(value)


def _round_significant(value: float, digits: int = 3) -> float:
    """The value rounded to ``digits`` significant digits, from which the unit and the number of places are chosen."""
    if not math.isfinite(value) or abs(value) < ROUNDING:
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))


def decimals(value: float, places: int, *, signed: bool = False) -> str:
    """A number with ``places`` decimals and thousands separators, never “-0”; ``signed``: “+” if positive."""
    if not abs(value) < LARGEST:  # also no number
        return number(value, signed=signed)
    shown = round(value, places) or 0.0  # not -0.0
    text = f"{shown:,.{places}f}"
    return f"+{text}" if signed and shown > 0 else text


def percent(share: float, places: int = 1) -> str:
    """A share of 1 in per cent with ``places`` digits after the point: “4.2 %”."""
    return f"{decimals(100 * share, places)} %"


def probability(share: float) -> str:
    """A probability of meeting a target: “94 %”, rounded down so that it isn't overstated; “under 1 %” to “99 %”, as an
    estimate is never certain."""
    if share < 0.01:
        return "under 1 %"
    return f"{min(math.floor(100 * share + ROUNDING * 1e3), 99)} %"


def confidence(share: float) -> str:
    """A confidence level (share of 1) in per cent, with enough digits to differ from 100 %: “95 %”, “99.955 %”."""
    if not math.isfinite(share):
        return NOTHING
    places = max(1 - math.floor(math.log10(max(100 * (1 - share), 1e-9))), 0)
    return f"{decimals(100 * share, places).rstrip('0').rstrip('.') if places else decimals(100 * share, 0)} %"


def interval(mean: float, low: float, high: float, *, signed: bool = False) -> str:
    """A mean with its bounds to two digits of their distance: “1.23 [1.11, 1.35]”; ``signed``: “+” if positive."""
    parts, spread = (mean, low, high), high - low
    if not 10.0**-MOST_DIGITS <= spread < math.inf:
        texts = [number(part, 4, signed=signed) for part in parts]
    else:
        places = min(max(1 - math.floor(math.log10(spread)), 0), MOST_DIGITS)
        texts = [decimals(part, places, signed=signed) for part in parts]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def amount(value: float, unit: str) -> str:
    """A quantity with its unit: “4.2 %”, “1,912 s”, “484 µs”, “$4.15”, “$0.40”, “0.13 node-hours”."""
    if unit == SHARE:
        return percent(value)
    if unit == "s":
        return seconds(value)
    unit = currency() if unit == MONEY else unit
    sign, code = _currency_form(unit)
    if sign or code:
        size = abs(value)
        cents = 0.09995 <= size < 999.995  # $0.10 to $999.99 when rounded
        figure = decimals(size, 2) if cents else number(size)
        figure = figure.removeprefix("< ")
        minus = "-" if value < 0 and figure != "0" else ""
        below = ("> " if value < 0 else "< ") if ROUNDING <= size < SMALLEST else ""
        return f"{below}{minus}{unit}{figure}" if sign else f"{below}{minus}{figure} {unit}"
    return f"{number(value)} {unit}".rstrip()


@lru_cache(maxsize=256)
def _currency_form(unit: str) -> tuple[bool, bool]:
    """Return whether ``unit`` is a currency's sign, which stands before the figure, and whether it is its code."""
    sign = bool(unit) and not any(letter.isalnum() or letter == "%" for letter in unit.split("/")[0])
    return sign, len(unit) == CODE_LENGTH and unit.isupper()


def amount_or_duration(value: float, unit: str) -> str:
    """A quantity with its unit, for lists and reasons: “4.2 %”, “12.4 s”; seconds from a minute on in their two largest
    units: “31 min 52 s”. Tables that compare figures use ``amount``, which has more digits."""
    return duration(value) if unit == "s" and 60 <= round(value, 0) < math.inf else amount(value, unit)


def money(value: float) -> str:
    """A cost in the configured currency: “$4.15”, “4.15 EUR”."""
    return amount(value, MONEY)


def seconds(value: float) -> str:
    """A duration given in seconds, in s, ms or µs: “1.3 s”, “62 ms”, “484 µs”."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(_round_significant(value)) >= size:
            return f"{number(value / size)} {unit}"
    return "0 s" if abs(value) < 1e-9 else f"{number(value / 1e-6)} µs"


def duration(value: float | None) -> str:
    """A duration given in seconds, in its two largest units of d, h, min, s: “1 h 02 min”; below a minute “1.3 s”, “62
    ms” or “484 µs”; empty for None, “–” if it is not finite."""
    if value is None:
        return ""
    if not math.isfinite(value):
        return NOTHING
    whole = max(round(value), 0)
    if whole < 60:
        return seconds(max(value, 0.0))
    at = 0
    while whole < UNITS[at][0]:
        at += 1
    (size, unit), (part, smaller) = UNITS[at : at + 2]
    count, rest = whole // size, whole % size // part
    text = f"{count:,} {unit}" if count < LARGEST else f"{number(count)} {unit}"
    return f"{text} {rest:02} {smaller}" if rest else text


GPUS = {"gpu": "GPUs", "gpus": "GPUs"}
"""Names of resources that have their own spelling."""


def resource_name(name: str) -> str:
    """A resource’s name for people: “GPUs”, “executors”."""
    return GPUS.get(name, name.replace("_", " "))


def count_text(count: float, noun: str, most: float | None = None) -> str:
    """A count with its noun, or a range of counts up to ``most``: “1 node”, “1,912 nodes”, “1–8 nodes”."""
    counts = sorted({count, count if most is None else most})
    return f"{'–'.join(number(one, 9) for one in counts)} {noun}{'' if counts == [1] else 's'}"


def quantity(figure: str, name: str, unit: str = "") -> str:
    """A figure of a resource: “6 GPUs”, “4 executors”, “cpu 125 %”, and “cpu 4” if its ``unit`` is not known."""
    if name in GPUS:
        return f"{figure} GPU" if figure == "1" else f"{figure} GPUs"
    if unit in ("", name, name.removesuffix("s")):
        return f"{figure} {resource_name(name)}" if name.endswith("s") else f"{resource_name(name)} {figure}"
    return f"{resource_name(name)} {figure} {unit}"


def in_words(amounts: Mapping[str, float], units: Mapping[str, str] | None = None) -> str:
    """Format amounts by name, such as an allocation’s by resource, with their ``units``: “6 GPUs, memory 512 MiB”."""
    known = units or {}
    return ", ".join(quantity(number(value, 9), name, known.get(name, "")) for name, value in amounts.items())


def moment(at: datetime | None) -> str:
    """A time ``at`` in UTC to the second: “2026-01-31 18:05:00 UTC”; empty for None."""
    return "" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


EPOCH, END_OF_TIME = 1e9, 253_402_300_800
"""Bounds of the seconds of a clock that counts from 1970; the second is the end of the year 9999."""


def clock(at: float) -> str:
    """A time in seconds of a run's clock: UTC if it counts from 1970, else the duration since its start."""
    if EPOCH < at < END_OF_TIME:
        return moment(datetime.fromtimestamp(at, UTC))
    return f"{duration(at)} of the run"


Comparison = Literal["better", "tied", "worse", "unclear"]


def compared(difference: Mapping[str, float], margin: float) -> Comparison:
    """Verdict on a policy compared with another, by the interval (`low`, `high`) of its mean difference of return.

    `tied`: the interval is within ``margin`` of 0 on either side; `better`, `worse`: it is beyond; else `unclear`.
    """
    low, high = difference["low"], difference["high"]
    if low > margin:
        return "better"
    if high < -margin:
        return "worse"
    return "tied" if low >= -margin and high <= margin else "unclear"


def verdict(result: Comparison, policy: str) -> str:
    """A comparison's result as a sentence without its subject: “Better than …”, “Tied with …: nothing to gain here.”"""
    return {
        "better": f"Better than {policy}.",
        "tied": f"Tied with {policy}: nothing to gain here.",
        "worse": f"Worse than {policy}.",
        "unclear": f"No significant difference from {policy}: more episodes are needed to tell.",
    }[result]
