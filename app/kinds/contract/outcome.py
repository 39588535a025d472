"""What users count of a policy's episodes, in units of their own: runs late, and by how much; hours, money, changes."""

from typing import Any, NamedTuple

from app.charts.text import MONEY, currency


class Outcome(NamedTuple):
    """One quantity, of which means over episodes are shown.

    Attributes:
        name: what reports call it.
        unit: of its amounts; ``SHARE``: a part of 1, shown in per cent; ``MONEY``: in the currency of all prices.
    """

    name: str
    unit: str = ""

    def document(self) -> dict[str, Any]:
        """Its name and unit as reports store them, with the currency of the time in place of ``MONEY``."""
        return {"name": self.name, "unit": currency() if self.unit == MONEY else self.unit}
