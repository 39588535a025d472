"""What the jobs of a run have shown of their applications: throughput, gradients, and how much those that ended needed.

It is what a run knows before there is a domain model, and of applications that the model doesn't know. What a job is
worth is counted in samples, each at the statistical efficiency of the initial batch (``goodput``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from app.kinds.cluster.goodput import Batches, Course, course, efficiency, step_seconds
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.profile import SURPRISE, fit, foreseen, sizes_of

MOST_APPLICATIONS, MOST_PLACES, MOST_TOTALS = 256, 48, 64
REMEMBERED = 8
"""Measurements at a place over which it is averaged, about."""
SHOWN_BYTES, PLACE_BYTES = 600, 200
OCTAVES = 8
"""Noise scales that differ by less than an eighth of a doubling count as the same."""


class Measured(NamedTuple):
    """A step: nodes and GPUs, samples of a GPU at once, seconds, those of computing in them, how often it was seen."""

    nodes: int
    gpus: int
    local: int
    seconds: float
    computing: float
    seen: int


class Shown(NamedTuple):
    """What jobs of one application have shown.

    Attributes:
        initial: batch at whose efficiency samples are counted.
        noise_scale: of the gradient when it was first reported; infinite before.
        places: measured steps.
        needed: samples that jobs needed until they finished, and the size of their data, 0 where it isn't known.
    """

    initial: int
    noise_scale: float = np.inf
    places: tuple[Measured, ...] = ()
    needed: tuple[tuple[float, float], ...] = ()

    @property
    def most(self) -> int:
        """GPUs on which it was measured."""
        return max((one.gpus for one in self.places), default=0)

    @property
    def parameters(self) -> Floats | None:
        """Of the throughput, [7]; None before a measurement."""
        if not self.places:
            return None
        return _fitted(tuple((*one[:3], _step(one.seconds), _step(one.computing)) for one in self.places))


Experience = Mapping[str, Shown]
"""By application."""


def measured(shown: Shown, step: Measured) -> Shown:
    """With one more step, if it isn't what was expected; steps on the same GPUs at about the same batch are one."""
    key = _key(step)
    at = next((place for place, one in enumerate(shown.places) if _key(one) == key), None)
    if at is None:
        if _expected(shown, step):
            return shown
        return shown._replace(places=(*shown.places, step)[-MOST_PLACES:])
    known = shown.places[at]
    if known.local != step.local and _expected(shown, step):
        return shown
    if known.local == step.local:
        seen = min(known.seen + 1, REMEMBERED)
        each = ((known.seconds, step.seconds), (known.computing, step.computing))
        seconds, computing = (old * (new / old) ** (1 / seen) for old, new in each)
        step = known._replace(seconds=seconds, computing=min(computing, seconds), seen=seen)
    return shown._replace(places=(*shown.places[:at], step, *shown.places[at + 1 :]))


def _key(one: Measured) -> tuple[int, int, int]:
    return one.nodes, one.gpus, round(2 * np.log2(max(one.local, 1)))


def _expected(shown: Shown, step: Measured) -> bool:
    """Whether it is what was expected of it, by steps that were measured before."""
    if shown.parameters is None:
        return False
    return foreseen(shown.parameters, [one[:3] for one in shown.places], step[:3], step[3:5])


def times(shown: Shown, step: Measured) -> tuple[float, float]:
    """Seconds of computing and of a whole step that are expected at a place."""
    parameters = shown.parameters
    assert parameters is not None  # noqa: S101 - who calls has measured something
    place = (np.array(float(part)) for part in (step.nodes, step.gpus, step.local))
    return float(parameters[0] + parameters[1] * step.local), float(step_seconds(parameters, *place))


def _step(seconds: float) -> int:
    """Seconds by steps of ``SURPRISE``: throughput is fitted anew where an average comes to another one."""
    return round(float(np.log(seconds)) / SURPRISE)


@lru_cache(maxsize=1_024)
def _fitted(places: tuple[tuple[int, int, int, int, int], ...]) -> Floats:
    times = np.exp(SURPRISE * np.array([place[3:] for place in places]))
    each = zip(places, times.tolist(), strict=True)
    return fit({place[:3]: (whole, min(computing, whole)) for place, (whole, computing) in each})


def ended(shown: Shown, needed: float, data: float) -> Shown:
    """A job is finished that needed so many samples."""
    return shown._replace(needed=(*shown.needed, (needed, data))[-MOST_TOTALS:])


def goodput(shown: Shown, batches: Batches, noise_scale: float, cluster: tuple[int, int]) -> Course:
    """Samples a second at the best batch on each number of GPUs; ``cluster``: GPUs of a node, and of all."""
    parameters = shown.parameters
    assert parameters is not None  # noqa: S101 - who calls has measured something
    return _goodput(parameters.tobytes(), batches, rounded(noise_scale), cluster)


@lru_cache(maxsize=1_024)
def _goodput(parameters: bytes, batches: Batches, noise_scale: float, cluster: tuple[int, int]) -> Course:
    node, total = cluster
    throughput = np.frombuffer(parameters)

    def times(gpus: Integers, local: Floats) -> tuple[Floats, Floats]:
        whole = step_seconds(throughput, sizes_of(gpus, node), gpus, local)
        return throughput[0] + throughput[1] * local, whole

    return course(times, batches, noise_scale, total)


def rounded(noise_scale: float) -> float:
    """To an eighth of a doubling; what isn't known stays infinite."""
    if not np.isfinite(noise_scale):
        return np.inf
    return float(2.0 ** (round(OCTAVES * np.log2(max(noise_scale, 1e-3))) / OCTAVES))


def rate(initial: float, batch: float, seconds: float, noise_scale: float) -> float:
    """Samples a second of steps that were measured."""
    return float(batch / seconds * efficiency(initial, np.array(batch), noise_scale))


def bounded(experience: dict[str, Shown], there: Iterable[str]) -> Experience:
    """Without the oldest applications of which no job is there, where they are too many; the last ones at most."""
    spare = len(experience) - MOST_APPLICATIONS
    if spare <= 0:
        return experience
    present = set(there)
    oldest = [name for name in experience if name not in present] + [name for name in experience if name in present]
    for name in oldest[:spare]:
        del experience[name]
    return experience


def weight(experience: Experience) -> int:
    """About how many bytes it takes in memory."""
    return sum(SHOWN_BYTES + PLACE_BYTES * (len(one.places) + len(one.needed)) for one in experience.values())


def pack(experience: Experience) -> list[Any]:
    """As plain lists, for JSON."""
    return [
        [
            name,
            one.initial,
            one.noise_scale if np.isfinite(one.noise_scale) else None,
            list(one.places),
            list(one.needed),
        ]
        for name, one in experience.items()
    ]


def unpack(stored: list[Any]) -> Experience:
    """The experience whose ``pack`` went through JSON."""
    return {
        name: Shown(
            initial,
            np.inf if noise is None else noise,
            tuple(Measured(*place) for place in places),
            tuple((samples, data) for samples, data in needed),
        )
        for name, initial, noise, places, needed in stored
    }
