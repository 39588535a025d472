"""The domain model of a ``cluster`` workload: seconds of steps, learning curves, interference and arrivals.

It is a file of arrays with a header of names; workers make it, the service and the simulator read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import arrivals, interference
from app.kinds.cluster.arrivals import Arrivals
from app.kinds.cluster.goodput import efficiency
from app.kinds.cluster.interference import Interference
from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.learning_curves import LearningCurves
from app.kinds.cluster.throughput import LAYOUTS, Throughput
from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.forecasting.forecaster import Forecaster, read
from app.kinds.tensors import read_json, read_tensors, written

FORMAT = "cluster-1"
PARTS: Mapping[str, Any] = {
    "throughput": Throughput,
    "curves": LearningCurves,
    "interference": Interference,
    "arrivals": Arrivals,
}
OWN = ("noise_scale", "initial", "forecasts")


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """What is known of applications, A of which were measured, and of arrivals.

    Attributes:
        applications: names; the first A are those of ``throughput``.
        throughput: seconds of steps, of applications that were measured.
        noise_scale: gradient noise scale in samples, in each tenth of a job's run; NaN where it isn't known, [A, 10].
        initial: samples of an update to which its efficiency is told, the fewest that were measured, [A].
        curves: how applications learn.
        interference: what they do to one another.
        arrivals: how jobs come.
        forecasts: what ``app.kinds.forecasting.forecaster.written`` made of forecasters by queue; empty without any.
    """

    applications: tuple[str, ...]
    throughput: Throughput
    noise_scale: Floats
    initial: Floats
    curves: LearningCurves
    interference: Interference
    arrivals: Arrivals
    forecasts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def forecasters(self) -> Sequence[Forecaster]:
        """Of the jobs that come to each queue; empty where no log lasts long enough."""
        return read(self.forecasts) if len(self.forecasts) else ()

    @classmethod
    def unfitted(cls, layout: Layout) -> Self:
        """What is known before anything was measured: no application, and no arrival."""
        node = np.array([int(layout.capacity.max()), len(layout.capacity)])
        whole, none = np.zeros(0, np.int64), np.zeros((0, 2))
        untold = Throughput(np.zeros((1, 0, LAYOUTS, 1, 2)), np.ones(1, np.int64), none, none, node, whole)
        curves = LearningCurves(whole, whole.astype(np.bool_), none, none, np.zeros((0, 2, 1)), none, whole, none)
        arrives = arrivals.none(len(layout.queues))
        return cls((), untold, np.zeros((0, 10)), np.zeros(0), curves, interference.unknown(), arrives)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each application stands."""
        return {name: position for position, name in enumerate(self.applications)}

    @cached_property
    def _classes(self) -> Mapping[tuple[str, bool], int]:
        of = zip(self.curves.application.tolist(), self.curves.rises.tolist(), strict=True)
        return {(self.applications[one], rises): number for number, (one, rises) in enumerate(of)}

    def curve_class(self, application: str, rises: bool) -> int:
        """Which class of learning curves an application's are of, −1: none is known."""
        return self._classes.get((application, rises), -1)

    @property
    def measured(self) -> int:
        """A, how many applications were measured."""
        return len(self.throughput.largest)

    def efficiency(self, application: int, batch: float, part: float = 0.5) -> float:
        """What a sample of a larger batch is worth, against one of the initial batch; NaN where that isn't known.

        (M₀ + φ)/(M + φ), φ being the gradient noise scale (Pollux, section 3.1).

        Args:
            part: of the job's run that is done, 0 to 1.
        """
        scale = self.noise_scale[application, min(int(part * self.noise_scale.shape[1]), self.noise_scale.shape[1] - 1)]
        known = bool(np.isfinite(scale))
        return float(efficiency(self.initial[application], np.array(batch), scale)) if known else np.nan

    def check(self, layout: Layout) -> None:
        """Make sure that it is of a layout.

        Raises:
            IncompatibleModel: it is of another one.
        """
        if len(self.arrivals.rate) != len(layout.queues):
            raise IncompatibleModel(f"the model is of {len(self.arrivals.rate)} queues, not {len(layout.queues)}")

    def to_bytes(self) -> bytes:
        """As safetensors; equal models give equal bytes."""
        arrays = {
            f"{part}.{name}": np.asarray(value)
            for part in PARTS
            for name, value in getattr(self, part)._asdict().items()
        }
        own = {name: getattr(self, name) for name in OWN}
        return written({**arrays, **own}, {"format": FORMAT, "applications": json.dumps(self.applications)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What ``to_bytes`` wrote.

        Raises:
            IncompatibleModel: ``data`` is no such model, or one of another version.
        """
        try:
            header, arrays = read_tensors(data)
            version = header.get("format")
            if version != FORMAT:
                raise IncompatibleModel(f"the model has format {version}, this version reads {FORMAT}")
            parts = {name: kind(*(arrays[f"{name}.{field}"] for field in kind._fields)) for name, kind in PARTS.items()}
            own: dict[str, Any] = {name: arrays[name] for name in OWN if name in arrays}
            return cls(applications=tuple(read_json(header["applications"])), **parts, **own)
        except (ValueError, TypeError, KeyError) as error:
            raise IncompatibleModel(f"no domain model of kind cluster: {error}") from error
