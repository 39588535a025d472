"""A fitted forecaster of one series: which family answers at each horizon, and how far it has erred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.forecasting.series import Floats, Integers, Series, unscaled
from app.kinds.forecasting.stacked import Family, Stacked

LEVEL = 0.9
Forward = Family | Stacked
"""What a family gives: ``medians(series, origins)`` tells, in scaled terms, what comes each of its ``horizons`` after
each origin, [m, H]; an origin [m] is the position of the last interval that is known."""


class Expected(NamedTuple):
    """What is expected of intervals: counts, of any one shape.

    Attributes:
        median: the counts that err least absolutely.
        mean: of what may come; bursts lift it.
        low, high: bounds of an interval that holds 90 % of what comes.
    """

    median: Floats
    mean: Floats
    low: Floats
    high: Floats


class Forecaster(msgspec.Struct, frozen=True, eq=False):
    """Of one series.

    Attributes:
        name: of the series.
        horizons: in intervals.
        chosen: position in ``families`` of the one that answers, by horizon.
        names: of the families that answer somewhere.
        families: these.
        errors: by horizon, on origins that no fit had seen: what is added to medians in scaled terms to reach the two
            bounds, what medians are multiplied with to be means, and what is then added to these, [H, 4]; models of
            earlier versions add nothing, [H, 3].
        history: what it was fitted to, or its end.
    """

    name: str
    horizons: tuple[int, ...]
    chosen: tuple[int, ...]
    names: tuple[str, ...]
    families: tuple[Forward, ...]
    errors: Floats
    history: Series

    def expected(self, series: Series, origins: Integers) -> Expected:
        """What comes after origins, [m, H]."""
        series = series._replace(unit=self.history.unit)
        told = [family.medians(series, origins) for family in self.families]
        columns = [told[family][:, place] for place, family in enumerate(self.chosen)]
        return bounded(np.stack(columns, axis=1), self.errors, series.unit)

    def ahead(self, since: ArrayLike = ()) -> Expected:
        """What comes after its history, and what was counted since in intervals that follow it, [H]."""
        series = self.history.then(since)
        return Expected(*(part[0] for part in self.expected(series, np.array([len(series.counts) - 1]))))


Written = tuple[Literal["forecasts-1"], tuple[Forecaster, ...]]


def bounded(medians: Floats, errors: Floats, unit: float) -> Expected:
    """Medians in scaled terms [..., H] with all that errors [H, 4] say of them, see ``Forecaster``."""
    told = unscaled(medians, unit)
    low, high = unscaled(medians + errors[:, 0], unit), unscaled(medians + errors[:, 1], unit)
    mean = errors[:, 2] * told + errors[:, 3:].sum(axis=1)
    return Expected(told, mean, np.minimum(low, told), np.maximum(high, told))


def written(forecasters: Sequence[Forecaster]) -> NDArray[np.uint8]:
    """As bytes, to stand beside a model's other arrays."""
    return np.frombuffer(msgspec.msgpack.encode(("forecasts-1", tuple(forecasters)), enc_hook=_encoded), np.uint8)


def read(data: NDArray[np.uint8]) -> tuple[Forecaster, ...]:
    """What ``written`` wrote.

    Raises:
        IncompatibleModel: these are no forecasters, or of another version.
    """
    try:
        return msgspec.msgpack.decode(data.tobytes(), type=Written, dec_hook=_decoded)[1]
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise IncompatibleModel(f"no forecasts: {error}") from error


def _encoded(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _decoded(_: type, value: Any) -> NDArray[Any]:
    dtype, shape, data = value
    return np.frombuffer(data, dtype).reshape(shape)
