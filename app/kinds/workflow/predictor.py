"""How long tasks will run, when their users can't be relied on: the domain model of kind ``workflow``.

Families, from few to many parameters: *mean*, one run time for all; *estimate*, what the user asked for; *ratio*, that
times the user's usual share of it; *history*, the mean of the user's last two run times (Tsafrir, Etsion and
Feitelson 2007). None exceeds the estimate, beyond which batch systems end a task.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.tensors import read_json
from app.kinds.workflow.run_times import Finished

Floats = NDArray[np.float64]
FAMILIES = ("mean", "estimate", "ratio", "history")
UNKNOWN_SECONDS = 3600.0  # what is assumed of a task before anything is known


@dataclass(frozen=True)
class Predictor:
    """A fitted family; as it stands without any sample it believes the user.

    Attributes:
        family: one of ``FAMILIES``.
        mean: seconds at speed 1, over all tasks; not a number before any is known.
        ratio: run time over estimate, over all tasks.
        ratios: the same of each user.
    """

    family: str = "estimate"
    mean: float = float("nan")
    ratio: float = 1.0
    ratios: Mapping[str, float] = field(default_factory=dict)

    def expected(self, estimate: Floats, users: Sequence[str], history: Mapping[str, Sequence[Finished]]) -> Floats:
        """Seconds at speed 1 that each task is planned with, [N]: more than 0, and no more than its estimate.

        Args:
            estimate: seconds, not a number where unknown, [N].
            users: empty where unknown, [N].
            history: the last tasks of users, the newest last.
        """
        last = {user: [task.seconds for task in tasks[-2:]] for user, tasks in history.items() if tasks}
        usual = {user: sum(seconds) / len(seconds) for user, seconds in last.items()}
        own = np.array([usual.get(user, np.nan) for user in users]) if usual else np.full(len(estimate), np.nan)
        seconds = {
            "mean": np.full(len(estimate), self.mean),
            "estimate": estimate,
            "ratio": self._shares(estimate, users) if self.family == "ratio" else estimate,
            "history": own,
        }[self.family]
        for fallback in (estimate, own, np.full(len(estimate), self.mean), np.full(len(estimate), UNKNOWN_SECONDS)):
            seconds = np.where(np.isnan(seconds), fallback, seconds)
        return np.fmax(np.fmin(seconds, estimate), 1e-3)

    def _shares(self, estimate: Floats, users: Sequence[str]) -> Floats:
        return estimate * np.array([self.ratios.get(user, self.ratio) for user in users])

    def to_bytes(self) -> bytes:
        """As JSON."""
        mean = None if np.isnan(self.mean) else self.mean
        return json.dumps(
            {"family": self.family, "mean": mean, "ratio": self.ratio, "ratios": dict(self.ratios)}
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What ``to_bytes`` wrote.

        Raises:
            IncompatibleModel: ``data`` is no such predictor, or one of another version.
        """
        try:
            known = read_json(data)
            mean = float("nan") if known["mean"] is None else float(known["mean"])
            ratios = {user: float(ratio) for user, ratio in known["ratios"].items()}
            return cls(FAMILIES[FAMILIES.index(known["family"])], mean, float(known["ratio"]), ratios)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise IncompatibleModel(f"it can't be read: {type(error).__name__}: {error}") from error
