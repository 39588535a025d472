"""What an evaluation has found out so far: one record for each unit of work, as bytes and back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, written


@dataclass(frozen=True, eq=False)
class Record:
    """Attributes: returns of the episodes, [E]; their outcomes, [E, O]; a heat map's sums, [2, Y, X]; plain values."""

    returns: NDArray[np.float32] | None = None
    outcomes: NDArray[np.float32] | None = None
    heat: NDArray[np.float64] | None = None
    details: dict[str, Any] = field(default_factory=dict)


class Records:
    """Records in the order of their units.

    Args:
        signature: plain values that say what is evaluated and how.
        data: what ``to_bytes`` gave under the same signature, or None.

    Raises:
        ValueError: ``data`` belongs to something else.
    """

    def __init__(self, signature: Any, data: bytes | None = None) -> None:
        self.signature = json.dumps(signature)
        self.seconds = 0.0
        self._records: list[Record] = []
        if data:
            self._read(data)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, place: int) -> Record:
        return self._records[place]

    def __iter__(self) -> Iterator[Record]:
        return iter(self._records)

    def append(self, record: Record) -> None:
        """Add the next unit's."""
        self._records.append(record)

    def to_bytes(self) -> bytes:
        """All of it."""
        arrays = {f"returns.{i}": r.returns for i, r in enumerate(self) if r.returns is not None}
        arrays |= {f"outcomes.{i}": r.outcomes for i, r in enumerate(self) if r.outcomes is not None}
        maps = {f"heat.{i}": r.heat for i, r in enumerate(self) if r.heat is not None}
        header = {"told": [r.details for r in self], "seconds": self.seconds, "signature": self.signature}
        return written({**arrays, **maps}, {"header": json.dumps(header)})

    def _read(self, data: bytes) -> None:
        header = json.loads(read_header(data)["header"])
        if header["signature"] != self.signature:
            raise ValueError(f"the checkpoint is of another evaluation: {header['signature']}, not {self.signature}")
        arrays = safetensors_numpy.load(data)
        self.seconds = header["seconds"]
        for i, details in enumerate(header["told"]):
            returns, outcomes, heat = (arrays.get(f"{part}.{i}") for part in ("returns", "outcomes", "heat"))
            self.append(Record(returns, outcomes, heat, details))
