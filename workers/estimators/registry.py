"""The regression families by name, from few to many parameters, and the fewest distinct inputs that each needs."""

from collections.abc import Callable
from typing import NamedTuple

from workers.estimators.base import Inputs
from workers.estimators.families import (
    Ernest,
    GaussianProcess,
    GradientBoosting,
    Guided,
    LogLinear,
    Make,
    Mean,
    Shape,
    parameters,
)
from workers.estimators.throughput import Throughput


class Family(NamedTuple):
    """A regression family in the registry.

    Attributes:
        make: constructor that takes the inputs' names.
        needs: function from the inputs' names to the fewest distinct inputs from which the family is tried.
        complexity: 0 for the constant, 1 to 3 for parametric families by flexibility, 4 for non-parametric ones.
    """

    make: Make
    needs: Callable[[Inputs], int]
    complexity: int


FREE = 4
NEVER = 10**9  # distinct inputs: for a family that does not apply to these columns


def _process(shape: Shape, trend: Make) -> Make:
    return lambda inputs: GaussianProcess(inputs, shape, trend)


def _with_guide(make: Make) -> Make:
    return lambda inputs: Guided(inputs, make(inputs))


FAMILIES: dict[str, Family] = {
    "mean": Family(Mean, lambda _: 1, 0),
    "ernest": Family(Ernest, lambda i: 2 + len(i.resources), 1),
    "absolute_ernest": Family(lambda i: Ernest(i, "absolute"), lambda i: 6 + len(i.resources), 1),
    "serial_ernest": Family(
        lambda i: Ernest(i, serial=True), lambda i: 6 + len(i.resources) if i.features else NEVER, 2
    ),
    "log_linear": Family(_with_guide(LogLinear), lambda i: parameters(i.width, 1) + 1, 2),
    "throughput": Family(Throughput, lambda i: 8 + 2 * i.width, 3),
    "log_quadratic": Family(_with_guide(lambda i: LogLinear(i, 2)), lambda i: 2 * parameters(i.width, 2), 3),
    "ernest_gaussian_process": Family(_process("smooth", Ernest), lambda i: 3 + 2 * i.width, FREE),
    "gaussian_process": Family(_with_guide(GaussianProcess), lambda i: 4 + 6 * i.width, FREE),
    "throughput_gaussian_process": Family(_process("smooth", Throughput), lambda i: 6 + 8 * i.width, FREE),
    "ernest_two_scale_gaussian_process": Family(_process("two_scale", Ernest), lambda i: 6 + 6 * i.width, FREE),
    "two_scale_gaussian_process": Family(
        _with_guide(lambda i: GaussianProcess(i, "two_scale")), lambda i: 6 + 8 * i.width, FREE
    ),
    "gradient_boosting": Family(_with_guide(GradientBoosting), lambda i: 20 + 10 * i.width, FREE),
}
