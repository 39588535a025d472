"""What users count of a policy's episodes, in units of their own: runs late, and by how much; hours, money, changes."""

from typing import NamedTuple

SHARE = "share"


class Outcome(NamedTuple):
    """One quantity; a mean over episodes is told.

    Attributes:
        name: what reports call it.
        unit: of its amounts; ``SHARE``: a part of 1, told in per cent.
    """

    name: str
    unit: str = ""


def amount(value: float, unit: str) -> str:
    """A quantity in words: “4.2 %”, “1,912 s”, “0.13”."""
    if unit == SHARE:
        return f"{value:.1%}".replace("%", " %")
    digits = ",.0f" if abs(value) >= 1000 else ".3g"  # four digits are told in full
    return f"{value:{digits}} {unit}".rstrip()
