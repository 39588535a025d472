"""Quantities as Kubernetes writes them: ``500m``, ``2``, ``1Gi``."""

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
    """A text is no quantity."""


def parse_quantity(text: str) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        QuantityError: it is none.
    """
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise QuantityError(f"{text!r} is no quantity; accepted are numbers such as 2, 500m, 1.5, 1Gi, 2e3")
    number, exponent, suffix = found.groups()
    return Decimal(number + (exponent or "")) * SUFFIXES[suffix or ""]


def quantity(amount: float | Decimal) -> str:
    """An amount as a quantity: whole, or in thousandths, rounded up: nobody is given less than was decided."""
    exact = Decimal(str(amount))
    if exact == exact.to_integral_value():
        return str(int(exact))
    return f"{int((exact / _MILLI).to_integral_value(ROUND_CEILING))}m"


class Conversion(NamedTuple):
    """Which resource of a workload one of Kubernetes' stands for: ``cpu=cores`` or ``memory=memory_gb*1G``.

    Attributes:
        name: in Kubernetes.
        resource: of the workload.
        unit: what one unit of the resource is there.
    """

    name: str
    resource: str
    unit: Decimal = Decimal(1)

    @classmethod
    def parse(cls, text: str) -> Conversion:
        """Read one.

        Raises:
            QuantityError: it can't be read.
        """
        name, _, rest = text.strip().partition("=")
        resource, _, unit = rest.partition("*")
        if not name or not resource:
            raise QuantityError(f"{text!r} is no NAME=RESOURCE or NAME=RESOURCE*UNIT such as cpu=millicores*1m")
        return cls(name, resource, parse_quantity(unit) if unit else Decimal(1))

    def of(self, amount: float) -> str:
        """So many units of the resource as a quantity."""
        return quantity(Decimal(str(amount)) * self.unit)
