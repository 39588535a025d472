"""Windows of time from which an agent continues learning: reports of runs, packed for simulators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.inference.layout import Layout
from app.kinds.inference.model import ServiceModel
from app.kinds.inference.samples import run_batches
from workers.estimators.base import TooLittleData
from workers.inputs import LoggedRun
from workers.kinds.inference.simulator.arrivals import RecordedArrivals
from workers.learning.execution import base as blob

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Batches(NamedTuple):
    """n measured batches: index of server class, index of variant, number of requests, seconds, [n] each."""

    server: Integers
    variant: Integers
    batch: Integers
    seconds: Floats


class Stretch(NamedTuple):
    """Reports of one run within the window, in seconds since the run began.

    Attributes:
        times: arrival times of each user's requests, ascending.
        since, until: bounds of the time that the reports cover.
        batches: measured batches.
    """

    times: Sequence[Floats]
    since: float
    until: float
    batches: Batches


def stretch(layout: Layout, run: LoggedRun) -> Stretch:
    """Extract arrivals and batches from a run's reports in the window. Raises IndexError if there is no report."""
    arrived = [event for report in run.reports for event in report.get("arrived") or ()]
    times = [
        np.sort(np.array([event["at"] for event in arrived if event["user"] == user], np.float64))
        for user in layout.users
    ]
    begin = min([float(run.reports[0]["at"]), *(float(own[0]) for own in times if len(own))])
    return Stretch(times, begin, float(run.reports[-1]["at"]), _batches(layout, run))


def _batches(layout: Layout, run: LoggedRun) -> Batches:
    columns = run_batches(layout, run.reports)
    known = [*zip(*(columns[name] for name in Batches._fields), strict=True)]
    return Batches(
        np.array([layout.servers.index(row[0]) for row in known], np.int64),
        np.array([layout.variants.index(row[1]) for row in known], np.int64),
        np.array([row[2] for row in known], np.int64),
        np.array([row[3] for row in known], np.float64),
    )


# A window of time for simulators: the requests that came, and the measured slow-down of batches.
#
# Each run's stretch is cut into episodes for judging, and parts for learning before, between and after them, within
# which episodes begin anywhere. So learning and judging share no data, and judged episodes don't overlap, hence are
# independent observations.


FEWEST_JUDGED, MOST_JUDGED = 8, 64  # judged episodes of the longest stretch, and of any
PART = 1.5  # shortest part for learning, in episodes
BEGINS = 8  # beginnings of episodes in each part
FEWEST_REQUESTS = 50
APART = 0.1  # prior deviation of the log slow-down of classes and variants about the common one
SLOWED = 1.0  # prior deviation of the common log slow-down


class Window(NamedTuple):
    """Requests and batch times of a window of time.

    Attributes:
        learning, judged: the same requests, with the beginnings of episodes to learn from and to be judged on.
        slower: natural log of batch seconds over the model's expectation, by C classes and V variants, [C, V].
        episode_seconds: length of an episode, seconds.
    """

    learning: RecordedArrivals
    judged: RecordedArrivals
    slower: Floats
    episode_seconds: float

    def adapt(self, model: ServiceModel) -> ServiceModel:
        """Return ``model`` with batch seconds multiplied by the factors measured in the window."""
        return replace(model, log_seconds=model.log_seconds + self.slower[None, :, :, None])

    def to_bytes(self) -> bytes:
        """Serialise the window for ``from_bytes`` and simulators' options."""
        arrays = {f"times.{user}": own for user, own in enumerate(self.learning.times)}
        for name, log in (("learning", self.learning), ("judged", self.judged)):
            arrays |= {f"{name}.begins": np.asarray(log.begins), f"{name}.late": np.asarray(log.late)}
        values = {"last": self.learning.last, "episode_seconds": self.episode_seconds}
        return blob.pack({**arrays, "slower": self.slower}, values)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the result of ``to_bytes``. Raises CheckpointError if the bytes are broken."""
        arrays, values = blob.unpack(data)
        times = [arrays[f"times.{user}"] for user in range(sum(name.startswith("times.") for name in arrays))]
        learning, judged = (
            RecordedArrivals(times, 0.0, values["last"], arrays[f"{name}.begins"], arrays[f"{name}.late"])
            for name in ("learning", "judged")
        )
        return cls(learning, judged, arrays["slower"], values["episode_seconds"])


def rebuilt(layout: Layout, model: ServiceModel, stretches: Sequence[Stretch]) -> Window:
    """Build the window from several runs' stretches, with ``model`` as the expectation of batch seconds.

    Raises:
        TooLittleData: no stretch is long enough for eight judged episodes, or fewer than 50 requests came.
    """
    control, longest = layout.spec.control_seconds, max((one.until - one.since for one in stretches), default=0.0)
    least = control * (1 + _length(FEWEST_JUDGED))
    came = sum(len(own) for one in stretches for own in one.times)
    if longest < least or came < FEWEST_REQUESTS:
        needs = f"{FEWEST_REQUESTS} requests in the window, and a run that reported for {least:g} s of it"
        raise TooLittleData(needs, f"{came} and {longest:g} s", "/online/window_seconds")
    episode = min(layout.spec.episode_seconds, (longest - control) / _length(FEWEST_JUDGED))
    cut = [_cut(one, episode, control) for one in stretches if one.until - one.since >= control + _length(1) * episode]
    starts = np.cumsum([0.0, *(log.last + 2 * episode for log, _ in cut)])
    users = range(len(layout.users))
    times = [np.concatenate([log.times[u] + at for (log, _), at in zip(cut, starts, strict=False)]) for u in users]

    def joined(*, judged: bool) -> RecordedArrivals:
        chosen = [(log.beginning(begins[judged], control), at) for (log, begins), at in zip(cut, starts, strict=False)]
        begins = np.concatenate([np.asarray(log.begins) + at for log, at in chosen])
        late = np.concatenate([np.asarray(log.late) for log, _ in chosen])
        return RecordedArrivals(times, 0.0, float(starts[-1]), begins, late)

    batches = Batches(*(np.concatenate(part) for part in zip(*(one.batches for one in stretches), strict=True)))
    return Window(joined(judged=False), joined(judged=True), slower(layout, model, batches), float(episode))


def _length(judged: int) -> float:
    """Return the length, in episodes, of the shortest stretch that has room for ``judged`` episodes to judge on."""
    return judged + PART * (judged + 1)


def _cut(one: Stretch, episode: float, control: float) -> tuple[RecordedArrivals, tuple[Floats, Floats]]:
    """Convert a stretch to a log from second 0 on, and choose beginnings of its episodes of ``episode`` seconds.

    Returns the log, and the seconds at which n episodes for learning and k for judging begin, [n] and [k].
    """
    whole = one.until - one.since
    log = RecordedArrivals([own - one.since for own in one.times], 0.0, whole)
    fitting = ((whole - control) / episode - PART) / (1 + PART)
    count = min(int(fitting + 1e-9), MOST_JUDGED)
    part = (whole - control - count * episode) / (count + 1)
    begins = control + (part + episode) * np.arange(count + 1)
    learning = (begins[:, None] + np.linspace(0.0, part - episode, BEGINS)).ravel()
    return log, (learning.astype(np.float64), (begins[:-1] + part).astype(np.float64))


def slower(layout: Layout, model: ServiceModel, batches: Batches) -> Floats:
    """Estimate the natural log of batch seconds over the model's expectation, by class and variant, [C, V]; all 0
    without any batch.

    The model is normal with two levels: a common slow-down, and deviations of each class and variant from it, given the
    median of each one's batches with the model's spread.
    """
    expected = model.log_seconds.mean(axis=0)  # [C, V, K]
    excess, count = np.zeros(expected.shape[:2]), np.zeros(expected.shape[:2])
    for server, variant in np.ndindex(*count.shape):
        own = (batches.server == server) & (batches.variant == variant)
        if own.any():
            usual = np.interp(batches.batch[own], layout.batches, expected[server, variant])
            excess[server, variant] = np.median(np.log(batches.seconds[own]) - usual)
            count[server, variant] = own.sum()
    known = APART**2 + model.spread**2 / np.maximum(count, 1)
    weight = np.where(count > 0, 1 / known, 0.0)
    common = (weight * excess).sum() / (weight.sum() + 1 / SLOWED**2)
    slowed: Floats = common + weight * APART**2 * (excess - common)
    return slowed
