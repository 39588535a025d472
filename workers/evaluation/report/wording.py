"""Figures in words: numbers with as many digits as carry something, and a dash where there is none."""

from __future__ import annotations

from typing import Any

from app.charts import text

NOTHING = text.NOTHING
MINUS = "−"


def number(value: float | None, *, signed: bool = False) -> str:
    """Four significant digits; what is nothing but rounding is 0."""
    return NOTHING if value is None else text.number(value, 4, signed=signed).replace("-", MINUS)


def interval(value: dict[str, float] | None, *, signed: bool = False) -> str:
    """Mean, and the interval in brackets: as many digits as the interval leaves room for."""
    if value is None:
        return NOTHING
    return text.interval(value["mean"], value["low"], value["high"], signed=signed).replace("-", MINUS)


def percent(value: float | None) -> str:
    """A share, in per cent."""
    return NOTHING if value is None else text.percent(value).replace("-", MINUS)


def percents(value: dict[str, float] | None) -> str:
    """An interval of shares, in per cent."""
    if value is None:
        return NOTHING
    return f"{percent(value['mean'])} [{percent(value['low'])}, {percent(value['high'])}]"


def count(value: float) -> str:
    """A whole number, in groups of three digits."""
    return f"{value:,.0f}"


def listed(names: Any) -> str:
    """Names with commas, and “and” before the last."""
    texts = [str(name) for name in names]
    return " and ".join(([", ".join(texts[:-1])] if len(texts) > 1 else []) + texts[-1:])
