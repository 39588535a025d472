"""The contract of a kind, and the errors it raises.

A kind is a package that keeps three things apart: what a launcher reports and receives (the *system interface*), the
workload's spec (the *configuration*), and what a policy sees, does and is paid for (the *representation*). It offers

===================  ====================================================================================
``Spec``             Pydantic model of ``POST /workloads``
``Layout(spec)``     spaces, names and scales derived once from a spec; nobody else writes a shape
``State``            structure of arrays with leading dimension B; JSON-serialisable through ``pack``
``begin, advance``   pure; the same functions in the simulator and in the service
``observe, mask``    pure and batched; an action that is masked out can't be chosen
``outlook``          the projected return of each action under the domain model
``step, reward``     pure and batched; reward terms are reported one by one
``HEURISTICS``       the classic policies, behind the same interface as agents
===================  ====================================================================================

Nothing here knows HTTP or SQL. Every member is run through ``tests/contracts/test_kind.py``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class FieldIssue(NamedTuple):
    """One thing that is wrong with an input: where (JSON pointer), what would be accepted, and the value given."""

    pointer: str
    message: str
    value: Any


class InvalidInput(ValueError):
    """Input that a kind refuses; ``errors`` names every offending field."""

    def __init__(self, errors: Sequence[FieldIssue]) -> None:
        self.errors = list(errors)
        super().__init__("; ".join(f"{e.pointer}: {e.message} (got {e.value!r})" for e in self.errors))


class Contradiction(InvalidInput):
    """Input that would do by itself, but contradicts what was said before."""


class IncompatibleModel(ValueError):
    """A stored domain model that this version can't read; the message says why."""


def unknown_names(part: str, given: Mapping[str, object], known: Sequence[str]) -> list[FieldIssue]:
    """An issue for each name under ``part`` that isn't known."""
    accepted = f"unknown name; known: {', '.join(known) or 'none'}"
    return [FieldIssue(f"/{part}/{name}", accepted, value) for name, value in given.items() if name not in known]


class Change(NamedTuple):
    """What ``PATCH /workloads/{workload}`` asks for, by name; what is left out stays.

    Attributes:
        targets: of metrics; None takes a target away.
        prices: per hour.
        weights: of the objective's terms.
    """

    targets: Mapping[str, float | None]
    prices: Mapping[str, float]
    weights: Mapping[str, float]


class Situation(NamedTuple):
    """What a policy is shown: B runs, each at the point of its next decision. The types are the kind's own."""

    projector: Any
    state: Any
    view: Any


class Choice(NamedTuple):
    """What a policy chose.

    Attributes:
        action: [B].
        values: what the policy expects of each action, in return, [B, N]; None when it does not say.
    """

    action: NDArray[np.integer]
    values: NDArray[np.floating] | None = None


class Policy(Protocol):
    """Whatever answers a decision: a heuristic, a table or a network."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def act(self, situation: Situation) -> Choice:
        """One legal action per run."""
        ...
