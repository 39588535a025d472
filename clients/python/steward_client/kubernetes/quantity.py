"""Kubernetes quantities, such as ``500m``, ``2`` or ``1Gi``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import NamedTuple

SUFFIXES: Mapping[str, Decimal] = {
    **{suffix: Decimal(10) ** power for suffix, power in (("n", -9), ("u", -6), ("m", -3), ("", 0))},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
_WRITTEN = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
_MILLI = Decimal("0.001")


class QuantityError(ValueError):
    """A text is no Kubernetes quantity or conversion; the message has the accepted forms."""


def parse_quantity(text: str) -> Decimal:
    """The number for which a quantity stands: ``500m`` is 0.5; raises QuantityError for another text."""
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise QuantityError(f"{text!r} is not a quantity; accepted: numbers such as 2, 500m, 1.5, 1Gi, 2e3")
    number, exponent, suffix = match.groups()
    return Decimal(number + (exponent or "")) * SUFFIXES[suffix or ""]


def quantity(amount: float | Decimal) -> str:
    """A number as a quantity: whole, or rounded up to thousandths (``500m``), so that none gets too little."""
    exact = Decimal(str(amount))
    if exact == exact.to_integral_value():
        return str(int(exact))
    return f"{int((exact / _MILLI).to_integral_value(ROUND_CEILING))}m"


class Conversion(NamedTuple):
    """Conversion of a workload's resource to a Kubernetes resource: ``cpu=cores`` or ``memory=memory_gb*1G``.

    Attributes:
        name: name of the Kubernetes resource.
        resource: name of the workload's resource.
        unit: amount of the Kubernetes resource per unit of the workload's.
    """

    name: str
    resource: str
    unit: Decimal = Decimal(1)

    @classmethod
    def parse(cls, text: str) -> Conversion:
        """Parse NAME=RESOURCE or NAME=RESOURCE*UNIT; raises QuantityError for another text."""
        name, _, rest = text.strip().partition("=")
        resource, _, unit = rest.partition("*")
        if not name or not resource:
            raise QuantityError(f"{text!r} is not NAME=RESOURCE or NAME=RESOURCE*UNIT such as cpu=millicores*1m")
        return cls(name, resource, parse_quantity(unit) if unit else Decimal(1))

    def of(self, amount: float) -> str:
        """An amount of the workload's resource as a Kubernetes quantity."""
        return quantity(Decimal(str(amount)) * self.unit)
