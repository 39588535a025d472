"""Checks of a training request: which fields exclude each other, and which the workload's kind ignores."""

from __future__ import annotations

from collections.abc import Sequence

from app import installed
from app.agents.algorithms import ONLINE, kind_specific_names, names
from app.agents.schemas import TrainRequest
from app.database.tables import Agent
from app.errors import FieldError, Invalid
from app.kinds.registry import KINDS

UNLEARNED = ("seeds", "executor", "device", "start_from", "imitate")
"""Fields without effect on the planner, which learns nothing, and on algorithms that belong to one kind."""
UNLEARNED_AGENTS = ("planner", "tuned_rule", "improved_rule")
"""Algorithms whose agents can't be trained further."""
IN_ONE_PROCESS = ("executor", "device")
"""Fields without effect on the tabular algorithm, which has no network."""
ONCE = ("budget", "seeds", "executor", "imitate", "promote", "require")
"""Fields without effect on algorithm `online`, whose settings are given per window."""

TOGETHER = ("executor", "start_from", "imitate")
"""Fields that trainings with one agent per role don't support."""


def check(request: TrainRequest) -> None:
    """Reject a training request whose fields contradict each other.

    Raises:
        Invalid: with one field error for each contradictory field.
    """
    errors = [*_unlearned_errors(request), *_tabular(request), *_online(request), *_beginnings(request)]
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_kind(request: TrainRequest, kind: str) -> None:
    """Reject fields and algorithms that the workload's kind doesn't support; raises Invalid with an error for each."""
    options = KINDS[kind].training
    errors = _useless(request, options.unused, f"must be left out: kind {kind} does not use it")
    if request.imitate is not None and "imitate" not in options.unused and request.imitate not in options.experts:
        message = f"must be one of {', '.join(options.experts)} for a workload of kind {kind}"
        errors.append(FieldError("/imitate", message, request.imitate))
    registered = (name for name in names() if name != ONLINE and name not in kind_specific_names())
    known = [*(options.algorithms or registered), *[ONLINE] * options.online, *options.own]
    if request.algorithm in options.own:
        errors += _useless(request, UNLEARNED, f"must be left out with algorithm {request.algorithm!r}, a kind's own")
    if request.algorithm not in known:
        message = f"must be one of {', '.join(known)} for a workload of kind {kind}"
        errors.append(FieldError("/algorithm", message, request.algorithm))
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_together(request: TrainRequest) -> None:
    """Reject fields that a workload with several roles doesn't support: its agents, one per role, train in one process.
    Raises Invalid with an error for each such field."""
    message = "must be left out for a workload with several roles: their agents learn together, in one process"
    errors = _useless(request, TOGETHER, message)
    if request.algorithm == ONLINE:
        text = f"must not be {ONLINE!r} for a workload with several roles, whose agents are promoted together"
        errors.append(FieldError("/algorithm", text, request.algorithm))
    if errors:
        raise Invalid("; ".join(f"{error.pointer[1:]} {error.message}" for error in errors), errors=errors)


def check_start(request: TrainRequest, agent: Agent) -> None:
    """Check `start_from`; raises Invalid if its agent can't be trained further, or not by the requested algorithm."""
    if agent.algorithm in UNLEARNED_AGENTS:
        message = f"must be an agent that can be trained further; agent {agent.version} is of {agent.algorithm!r}"
        raise Invalid(f"start_from {message}", errors=[FieldError("/start_from", message, agent.version)])
    if request.algorithm not in ("auto", ONLINE, agent.algorithm):
        message = f"must be {agent.algorithm!r}, which trained agent {agent.version}, or be left out"
        raise Invalid(f"algorithm {message}", errors=[FieldError("/algorithm", message, request.algorithm)])


def _unlearned_errors(request: TrainRequest) -> list[FieldError]:
    if request.algorithm != "planner":
        return []
    return _useless(request, UNLEARNED, "must be left out with algorithm 'planner', which learns nothing")


def _tabular(request: TrainRequest) -> list[FieldError]:
    if request.algorithm != "tabular_q":
        return []
    return _useless(request, IN_ONE_PROCESS, "must be left out with algorithm 'tabular_q', which has no network")


def _online(request: TrainRequest) -> list[FieldError]:
    if request.algorithm == ONLINE:
        return _useless(
            request, ONCE, f"must be left out with algorithm {ONLINE!r}, which continues with its own settings"
        )
    return _useless(request, ["online"], f"must be left out without algorithm {ONLINE!r}")


def _beginnings(request: TrainRequest) -> list[FieldError]:
    if request.start_from is None or request.imitate is None:
        return []
    message = "must be left out with start_from: a continued agent needs no imitation"
    return [FieldError("/imitate", message, request.imitate)]


def _useless(request: TrainRequest, names: Sequence[str], message: str) -> list[FieldError]:
    fields = TrainRequest.model_fields
    return [
        FieldError(f"/{name}", message, getattr(request, name))
        for name in names
        if getattr(request, name) != fields[name].default
    ]


# Options of a training that need a package which may be missing where workers run.


EXTRAS = {("executor", "ray"): "ray"}
"""Name of the extra by field and value."""


def require(request: TrainRequest) -> None:
    """Reject options whose extra isn't installed in this process's environment.

    Workers call it for themselves; the API calls it if its workers share its environment.

    Raises:
        Invalid: the message has the field, its value, and the command that installs the extra.
    """
    errors = [
        FieldError(f"/{field}", f"needs the extra {extra!r} where workers run: {installed.command(extra)}", value)
        for (field, value), extra in EXTRAS.items()
        if getattr(request, field, None) == value and installed.missing(extra)
    ]
    if errors:
        detail = "; ".join(f"{error.pointer[1:]} {error.value!r} {error.message}" for error in errors)
        raise Invalid(detail, errors=errors)
