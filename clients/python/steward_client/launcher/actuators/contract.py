"""Contract of actuators: an actuator starts a command somewhere, and sets its resources while it runs.

A package adds one by the entry-point group ``steward.actuators``: a factory, called as ``factory(wanted, **options)``.
``wanted`` has a `Range` for each resource that will be set; the options are keyword arguments of type ``str`` with
defaults, given on the command line (``--actuator docker --option image=python:3.11``). The factory starts nothing; it
raises `Unavailable` if the actuator can't be used here, and `CannotSet` if it can't set a wanted resource. One actuator
runs one command; `steward_client.launcher.actuators.kit` tests whether an actuator keeps this contract.

Common resources have fixed names and units: ``cpu`` in percent of a core (150 is a core and a half), ``memory`` in MiB,
``gpus``, ``nodes`` and ``workers`` as counts. They are totals over all processes and replicas of the command.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, runtime_checkable

GROUP = "steward.actuators"
UNITS = {"cpu": "%", "memory": "MiB", "gpus": "", "nodes": "", "workers": ""}
GRACE_SECONDS = 10.0

Allocation = Mapping[str, float]
Stream = Literal["stdout", "stderr"]
Sink = Callable[[Stream, bytes], None]
"""Called from the actuator's own threads with the stream and a piece of the command's output, of any size."""


def amount(value: float) -> str:
    """Format an amount as it can be given again: ``1048576``, where ``:g`` would write ``1.04858e+06``."""
    return f"{value:.12g}"


class ActuatorError(RuntimeError):
    """An actuator can't do what was requested, and nothing was changed; the message has reason and remedy."""


class Unavailable(ActuatorError):
    """The actuator can't be used here: a program, a permission or an address is missing; the message has the remedy."""


class CannotSet(ActuatorError):
    """An allocation can't be set, now or ever; the former allocation stays.

    Attributes:
        resource: name of the resource.
        value: the requested value, in the resource's unit.
        accepted: which values are accepted, in words.
        reason: why, by the name that the cluster gives it, such as ``Infeasible``; empty: it has none.
    """

    def __init__(self, resource: str, value: object, accepted: str, reason: str = "") -> None:
        self.resource, self.value, self.accepted, self.reason = resource, value, accepted, reason
        super().__init__(f"{resource}={amount(value) if isinstance(value, int | float) else value}", accepted)

    def __str__(self) -> str:
        return f"{self.args[0]} can't be set: {self.accepted}"


@dataclass(frozen=True)
class Range:
    """The values of a resource that may be requested: ``minimum``, ``minimum + step``, … ``maximum``, in its unit."""

    minimum: float
    maximum: float
    step: float = 1.0


@dataclass(frozen=True)
class Settable:
    """Description of how an actuator sets one resource.

    Attributes:
        unit: unit of its values, such as ``%`` or ``MiB``; empty for counts.
        minimum, maximum: bounds of the accepted values; maximum None: unbounded.
        how: the method, and why it was chosen, in words for users (``cgroup v2 quota``).
        change_seconds: approximate seconds per change in which the command makes no progress.
        restarts: whether a change restarts the command, which must then continue from a checkpoint of its own.
    """

    unit: str
    minimum: float
    maximum: float | None
    how: str
    change_seconds: float = 0.0
    restarts: bool = False

    def check(self, name: str, value: float) -> None:
        """Check that a ``value`` of resource ``name`` is within the bounds; raises `CannotSet` if not, or for NaN."""
        if not self.minimum <= value <= (float("inf") if self.maximum is None else self.maximum):  # NaN neither
            most = "" if self.maximum is None else f" to {amount(self.maximum)}"
            least = f"{amount(self.minimum)}{most}" if most else f"{amount(self.minimum)} or more"
            raise CannotSet(name, value, f"{least}{f' {self.unit}' if self.unit else ''} is accepted ({self.how})")


@dataclass(frozen=True)
class Launch:
    """A command to be started, and its surroundings.

    Attributes:
        command: program and arguments; never passed to a shell.
        allocation: the first allocation, with a value for each wanted resource.
        environment: variables to add to the environment that the command has anyway (locally: the launcher's).
        folder: the launcher's folder of files for this command; None: none. If the actuator has ``shares_files``, the
            command sees it under the same path and may read and append to its files.
        output: called with each piece of the command's output; None: the output goes where the launcher's own goes.
        name: name of the run, a slug that is valid as the name of a container or job.
        resumes: whether the command, when it is started again, continues from a checkpoint of its own. If not, no
            change and no scheduler may start it again.
    """

    command: Sequence[str]
    allocation: Allocation
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    output: Sink | None = None
    name: str = "steward-run"
    resumes: bool = False


@runtime_checkable
class Actuator(Protocol):
    """Starts one command and sets its resources. Used by one thread at a time, except for ``stop``.

    Attributes:
        name: name of the actuator's entry point.
        shares_files: whether the command sees files of the launcher's machine under the same paths. If not, the
            launcher gives it ``STEWARD_URL``, ``STEWARD_RUN`` and ``STEWARD_TOKEN``, with which its callbacks report to
            the service directly, while the launcher applies the decisions.
        passes_output: whether the command's output reaches ``Launch.output``; optional, an actuator without it does.
        apart: whether several commands, each by an actuator of its own, have room of their own, so that none slows
            another down; optional, an actuator without it doesn't give that.
    """

    name: str
    shares_files: bool

    def resources(self) -> Mapping[str, Settable]:
        """The wanted resources by name, and how each is set; the same at all times."""
        ...

    def start(self, launch: Launch) -> None:
        """Start the command with its first allocation.

        Raises:
            ActuatorError: it was started before, or can't be started (no such program, no such image, …).
            CannotSet: the allocation can't be set.
        """
        ...

    def apply(self, allocation: Allocation) -> Allocation:
        """Set the given resources, leave others unchanged, and return the allocation in effect, of all resources.

        Either all or none are set, as quickly as possible; unchanged values cost nothing. Values that the method rounds
        (for example to whole cores) are returned rounded. After the command's end nothing is done. If the values have
        to wait until there is room (`Deferring`), the former allocation is returned, and stays until then.

        Raises:
            CannotSet: a resource is unknown, out of bounds, or refused now (memory in use, no room in the cluster); the
                former allocation stays.
            ActuatorError: the daemon or cluster doesn't respond; the command runs on with either allocation.
        """
        ...

    def current(self) -> Allocation:
        """The allocation in effect, of all resources, as far as known; empty before the start. Doesn't fail."""
        ...

    def wait(self, seconds: float | None) -> int | None:
        """Wait for the command's end for at most ``seconds`` (0: only look; None: without limit), and return its exit
        status.

        None while it runs or before its start; 128 + n if signal n ended it, as in a shell. A daemon or cluster that
        doesn't respond counts as a running command. An actuator that knows what ended the command is `Explained`, too.
        """
        ...

    def stop(self, number: int = signal.SIGTERM, seconds: float = GRACE_SECONDS) -> int | None:
        """End the command and its descendants, and return its exit status as ``wait`` does; None before the start.

        Sends the signal ``number``, or the nearest equivalent, and kills after ``seconds``. May be repeated, in any
        state of the command.

        Raises:
            ActuatorError: the daemon or cluster doesn't respond.
        """
        ...

    def close(self) -> None:
        """End the command if it runs, and remove all limits, groups, containers, jobs and files. May be repeated.

        After the launcher's own death (SIGKILL) the same must happen in the end; otherwise the factory's documentation
        says what remains and how to remove it.
        """
        ...


@runtime_checkable
class Scheduled(Protocol):
    """Further attributes of an actuator whose command a scheduler starts, and may delay, end, or start again.

    Attributes:
        restarts: how often the command was started again, by a change or by the scheduler, as of the last look.
    """

    restarts: int

    def look(self) -> None:
        """Look at the command now; without a response nothing changes."""
        ...

    def news(self) -> list[str]:
        """What the scheduler has done since the last call, one line each: the command waits, runs, was requeued."""
        ...


class Waiting(NamedTuple):
    """A command that waits in a queue for its first start.

    Attributes:
        reason: why, by the name that the scheduler gives it, such as ``Resources``.
        never: whether it can't start as the cluster is now, however long it waits.
        behind: whether it waits for others ahead of it, rather than for room.
    """

    reason: str
    never: bool = False
    behind: bool = False


@runtime_checkable
class Queued(Protocol):
    """What an actuator offers besides if its command may wait in a queue for its first start.

    Attributes:
        waiting: why it waits, as of the last look; None: it doesn't.
    """

    waiting: Waiting | None


@runtime_checkable
class Deferring(Protocol):
    """Further attributes of an actuator with allocations that may have to wait until there is room for them.

    One allocation waits at a time: another ``apply`` replaces it, and one of the same values leaves it waiting. The
    first one may have to wait, too: the command starts with what is there, which ``current`` returns, as it grows.
    """

    def poll(self) -> str:
        """Look whether the last allocation of ``apply``, or the first one, is in effect now; returns why it isn't,
        empty: it is.

        The reason begins with the name that the cluster gives it, such as ``Deferred`` or ``Resources``.

        Raises:
            CannotSet: it was refused meanwhile; the former allocation stays.
            ActuatorError: the daemon or cluster doesn't respond.
        """
        ...

    def withdraw(self) -> None:
        """Give up the allocation that waits, if one does; the former one stays.

        Raises:
            ActuatorError: the daemon or cluster doesn't respond.
        """
        ...


@runtime_checkable
class Explained(Protocol):
    """Further method of an actuator that may know what ended its command.

    Attributes:
        reason: what it was, in words, such as that memory ran out or a scheduler cancelled it; empty: the command ended
            by itself, or nothing is known.
    """

    reason: str


def reason_of(actuator: Actuator) -> str:
    """Text on what ended an actuator's command; empty if that is unknown, or the actuator doesn't tell."""
    return actuator.reason if isinstance(actuator, Explained) else ""


Factory = Callable[..., Actuator]
"""``factory(wanted: Mapping[str, Range], **options: str)``, as in the module's description."""
