"""Figures in words: numbers with as many digits as carry something, and a dash where there is none."""

from __future__ import annotations

from typing import Any

NOTHING = "–"
MINUS = "−"


def number(value: float | None, *, signed: bool = False) -> str:
    """Four significant digits."""
    if value is None:
        return NOTHING
    text = f"{value:+.4g}" if signed else f"{value:.4g}"
    return text.replace("-", MINUS)


def interval(value: dict[str, float] | None, *, signed: bool = False) -> str:
    """Mean, and the interval in brackets."""
    if value is None:
        return NOTHING
    low, high = number(value["low"], signed=signed), number(value["high"], signed=signed)
    return f"{number(value['mean'], signed=signed)} [{low}, {high}]"


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
