"""Figures in words: numbers with as many digits as carry something, and a dash where there is none."""

from __future__ import annotations

import math
from typing import Any

NOTHING = "–"
MINUS = "−"
ROUNDING = 1e-12
MOST_DIGITS = 8
PARTS = ("mean", "low", "high")


def number(value: float | None, *, signed: bool = False) -> str:
    """Four significant digits; what is nothing but rounding is 0."""
    if value is None:
        return NOTHING
    shown = 0.0 if abs(value) < ROUNDING else value
    text = f"{shown:+.4g}" if signed else f"{shown:.4g}"
    return text.replace("-", MINUS)


def interval(value: dict[str, float] | None, *, signed: bool = False) -> str:
    """Mean, and the interval in brackets: as many digits as the interval leaves room for."""
    if value is None:
        return NOTHING
    spread = value["high"] - value["low"]
    if spread < ROUNDING:
        mean, low, high = (number(value[part], signed=signed) for part in PARTS)
    else:
        digits = min(max(1 - math.floor(math.log10(spread)), 0), MOST_DIGITS)
        sign = "+" if signed else ""
        mean, low, high = (f"{value[part]:{sign}.{digits}f}".replace("-", MINUS) for part in PARTS)
    return f"{mean} [{low}, {high}]"


def percent(value: float | None) -> str:
    """A share, in per cent."""
    return NOTHING if value is None else f"{value:.1%}".replace("-", MINUS)


def percents(value: dict[str, float] | None) -> str:
    """An interval of shares, in per cent."""
    if value is None:
        return NOTHING
    return f"{value['mean']:.1%} [{value['low']:.1%}, {value['high']:.1%}]"


def count(value: float) -> str:
    """A whole number, in groups of three digits."""
    return f"{value:,.0f}"


def listed(names: Any) -> str:
    """Names with commas, and “and” before the last."""
    texts = [str(name) for name in names]
    return " and ".join(([", ".join(texts[:-1])] if len(texts) > 1 else []) + texts[-1:])
