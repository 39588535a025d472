"""Algorithms that a training may name, and what of a request goes together."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from app.agents.algorithms import ONLINE, names, own
from app.agents.schemas import TrainRequest
from app.database.tables import Agent
from app.errors import FieldError, Invalid
from app.kinds.registry import KINDS

UNLEARNED = ("seeds", "executor", "device", "start_from", "imitate")
"""What the planner has no use for, as it plans and learns nothing; nor what kinds train by algorithms of their own."""
IN_ONE_PROCESS = ("executor", "device")
"""What a table has no use for."""
ONCE = ("budget", "seeds", "executor", "imitate", "promote", "require")
"""What a training that goes on has no use for: its steps are those of each window, and what is better answers."""

TOGETHER = ("executor", "start_from", "imitate")
"""What agents that learn together can't do."""


def check(request: TrainRequest) -> None:
    """Refuse what can't be meant together.

    Raises:
        Invalid: it names every field that contradicts another.
    """
    errors = [*_unlearned(request), *_tabular(request), *_online(request), *_beginnings(request)]
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_kind(request: TrainRequest, kind: str) -> None:
    """Refuse what a workload's kind has no use for.

    Raises:
        Invalid: it names every such field.
    """
    options = KINDS[kind].training
    errors = _useless(request, options.unused, f"must be left out: workloads of kind {kind} have no use for it")
    if request.imitate is not None and "imitate" not in options.unused and request.imitate not in options.experts:
        message = f"must be one of {', '.join(options.experts)} for a workload of kind {kind}"
        errors.append(FieldError("/imitate", message, request.imitate))
    registered = (name for name in names() if name != ONLINE and name not in own())
    known = [*(options.algorithms or registered), *[ONLINE] * options.online, *options.own]
    if request.algorithm in options.own:
        errors += _useless(request, UNLEARNED, f"must be left out with algorithm {request.algorithm!r}, a kind's own")
    if request.algorithm not in known:
        message = f"must be one of {', '.join(known)} for a workload of kind {kind}"
        errors.append(FieldError("/algorithm", message, request.algorithm))
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_together(request: TrainRequest) -> None:
    """Refuse what can't be asked of a training whose agents learn together: one for each role of the workload.

    Raises:
        Invalid: it names every such field.
    """
    message = "must be left out for a workload with several roles: their agents learn together, in one process"
    errors = _useless(request, TOGETHER, message)
    if request.algorithm == ONLINE:
        told = f"must not be {ONLINE!r} for a workload with several roles, whose agents are promoted together"
        errors.append(FieldError("/algorithm", told, request.algorithm))
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_start(request: TrainRequest, agent: Agent) -> None:
    """Refuse to go on from an agent by another algorithm than its own, or from one that has learned nothing.

    Raises:
        Invalid: it says which algorithm would do.
    """
    if agent.algorithm == "planner":
        message = f"must be an agent that learned; agent {agent.version} is a plan"
        raise Invalid(f"start_from {message}", errors=[FieldError("/start_from", message, agent.version)])
    if request.algorithm not in ("auto", ONLINE, agent.algorithm):
        message = f"must be {agent.algorithm!r}, which trained agent {agent.version}, or be left out"
        raise Invalid(f"algorithm {message}", errors=[FieldError("/algorithm", message, request.algorithm)])


def _unlearned(request: TrainRequest) -> list[FieldError]:
    if request.algorithm != "planner":
        return []
    return _useless(request, UNLEARNED, "must be left out with algorithm 'planner', which learns nothing")


def _tabular(request: TrainRequest) -> list[FieldError]:
    if request.algorithm != "tabular_q":
        return []
    return _useless(request, IN_ONE_PROCESS, "must be left out with algorithm 'tabular_q', which has no network")


def _online(request: TrainRequest) -> list[FieldError]:
    if request.algorithm == ONLINE:
        return _useless(request, ONCE, f"must be left out with algorithm {ONLINE!r}, which goes on by its own settings")
    return _useless(request, ["online"], f"must be left out without algorithm {ONLINE!r}")


def _beginnings(request: TrainRequest) -> list[FieldError]:
    if request.start_from is None or request.imitate is None:
        return []
    message = "must be left out with start_from: an agent that is gone on from has a beginning already"
    return [FieldError("/imitate", message, request.imitate)]


def _useless(request: TrainRequest, names: Sequence[str], message: str) -> list[FieldError]:
    fields = TrainRequest.model_fields
    return [
        FieldError(f"/{name}", message, getattr(request, name))
        for name in names
        if getattr(request, name) != fields[name].default
    ]


# What a training may ask for that comes with an extra, and may not be installed where it is to run.


EXTRAS = {("executor", "ray"): "ray"}
"""The extra, which is also the package's name, by field and value."""


def require(request: TrainRequest) -> None:
    """Refuse what is not installed here: a worker asks for itself, the API where its workers share its installation.

    Raises:
        Invalid: it names the field, its value, and the command that installs it.
    """
    errors = [
        FieldError(f"/{field}", f"needs the extra {extra!r} where workers run: pip install 'steward[{extra}]'", value)
        for (field, value), extra in EXTRAS.items()
        if getattr(request, field, None) == value and find_spec(extra) is None
    ]
    if errors:
        detail = "; ".join(f"{error.pointer[1:]} {error.value!r} {error.message}" for error in errors)
        raise Invalid(detail, errors=errors)
