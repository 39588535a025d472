"""Numbers and times as people and programs read them."""

from datetime import datetime


def number(value: float) -> str:
    """Three significant digits at least, thousands apart."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def timestamp(now: datetime) -> str:
    """RFC 3339, UTC, to the millisecond."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
