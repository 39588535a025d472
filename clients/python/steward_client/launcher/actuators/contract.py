"""What an actuator is: it starts a command somewhere, and sets the resources that it has while it runs.

A package adds one by the entry-point group ``steward.actuators``: a factory, called as ``factory(wanted, **options)``.
``wanted`` has a `Range` for each resource that will be set; the options are keyword arguments of type ``str`` (with
defaults), as they stand on the command line (``--actuator docker --option image=python:3.11``). The factory raises
`Unavailable` where the actuator can't be used here, `CannotSet` where it can't set a resource that is wanted, and
starts nothing. One actuator runs one command; `steward_client.launcher.actuators.kit` holds what each must do.

Where a resource is meant to be the same thing for everybody, its name and unit are these: ``cpu`` in percent of a core
(150 is a core and a half), ``memory`` in MiB, ``gpus``, ``nodes`` and ``workers`` as counts. They are what the command
has as a whole, over all its processes and replicas.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

GROUP = "steward.actuators"
UNITS = {"cpu": "%", "memory": "MiB", "gpus": "", "nodes": "", "workers": ""}
GRACE_SECONDS = 10.0

Allocation = Mapping[str, float]
Stream = Literal["stdout", "stderr"]
Sink = Callable[[Stream, bytes], None]
"""Takes what the command writes, as it comes, in pieces of any size; called from the actuator's own threads."""


class ActuatorError(RuntimeError):
    """An actuator can't do what it was asked for: the message says why, and what would help; nothing has changed."""


class Unavailable(ActuatorError):
    """It can't be used here: a program, a right or an address is missing; the message says how to get it."""


class CannotSet(ActuatorError):
    """An allocation that can't be set, now or ever.

    Attributes:
        resource: its name.
        value: what was asked for.
        accepted: what would be.
    """

    def __init__(self, resource: str, value: object, accepted: str) -> None:
        self.resource, self.value, self.accepted = resource, value, accepted
        super().__init__(f"{resource}={value:g}" if isinstance(value, int | float) else f"{resource}={value}", accepted)

    def __str__(self) -> str:
        return f"{self.args[0]} can't be set: {self.accepted}"


@dataclass(frozen=True)
class Range:
    """The values of a resource that will be asked for: ``minimum``, ``minimum + step`` … ``maximum``."""

    minimum: float
    maximum: float
    step: float = 1.0


@dataclass(frozen=True)
class Settable:
    """What an actuator can do about one resource.

    Attributes:
        unit: of its values.
        minimum, maximum: the least and the most that can be set; no maximum: None.
        how: by what it is set, and why by that, in words: it is shown (``cgroup v2 quota``).
        change_seconds: what a change costs the command, about, in seconds in which it makes no progress.
        restarts: a change ends the command and starts it anew, so that it must go on from a checkpoint of its own.
    """

    unit: str
    minimum: float
    maximum: float | None
    how: str
    change_seconds: float = 0.0
    restarts: bool = False

    def check(self, name: str, value: float) -> None:
        """Raise `CannotSet` unless ``value`` lies within the bounds."""
        if not self.minimum <= value <= (float("inf") if self.maximum is None else self.maximum):  # NaN neither
            most = "" if self.maximum is None else f" to {self.maximum:g}"
            least = f"{self.minimum:g}{most}" if most else f"{self.minimum:g} or more"
            raise CannotSet(name, value, f"{least}{f' {self.unit}' if self.unit else ''} is accepted ({self.how})")


@dataclass(frozen=True)
class Launch:
    """What is to be started.

    Attributes:
        command: program and arguments; never given to a shell.
        allocation: what it has from its first instruction on; a value for each resource that is wanted.
        environment: variables to set for it, beside those that it has anyway where it runs (locally: the launcher's).
        folder: the launcher's folder of files for this command. Where ``shares_files`` says so, the command sees it
            under this very path, and may read and append there; else ``environment`` names no file of it.
        output: takes what the command writes; None: that goes where the launcher's own output goes.
        name: of the run; a slug, fit for the name of a container or job.
    """

    command: Sequence[str]
    allocation: Allocation
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    output: Sink | None = None
    name: str = "steward-run"


@runtime_checkable
class Actuator(Protocol):
    """Starts one command and sets its resources. Used by one thread at a time, except for ``stop``.

    Attributes:
        name: of the actuator, as its entry point has it.
        shares_files: whether the command can see files of the launcher's machine, under the same paths. Where it
            can't, the launcher gives it ``STEWARD_URL``, ``STEWARD_RUN`` and ``STEWARD_TOKEN``, by which its
            callbacks report for themselves, and applies what is decided.
    """

    name: str
    shares_files: bool

    def resources(self) -> Mapping[str, Settable]:
        """What it can set of what is wanted: exactly those resources, by name; the same at all times."""
        ...

    def start(self, launch: Launch) -> None:
        """Start the command, under its first allocation.

        Raises:
            ActuatorError: it was started before, or can't be started (no such program, no such image …).
            CannotSet: the allocation can't be set.
        """
        ...

    def apply(self, allocation: Allocation) -> Allocation:
        """Set the named resources, others stay; what is really set afterwards, of all resources.

        All or nothing, at once or as quickly as the place allows; what is set already costs nothing. What ``how``
        rounds (to whole cores, say) is answered as it was rounded. After the command's end nothing is done.

        Raises:
            CannotSet: a resource is unknown, out of bounds, or refused now (memory that is in use, no room in the
                cluster): the command goes on as before.
            ActuatorError: the place does not answer: the command goes on, and may have either.
        """
        ...

    def current(self) -> Allocation:
        """What is set now, of all resources, as far as it is known; before the start nothing."""
        ...

    def wait(self, seconds: float | None) -> int | None:
        """The command's exit status once it has ended, within so many seconds (0: look only; None: for ever).

        None while it runs. A command that a signal has ended has 128 and the signal's number, as in a shell. A place
        that does not answer for a while has not ended the command.
        """
        ...

    def stop(self, number: int = signal.SIGTERM, seconds: float = GRACE_SECONDS) -> int | None:
        """End the command and all that it has started; its exit status, as ``wait`` has it; None before the start.

        Asks by a signal first, or by what comes nearest; after so many seconds it is killed. Whatever state it is in
        (stopped, ended, never started), however often it is called.
        """
        ...

    def close(self) -> None:
        """End the command if it runs, and undo everything: no limit, group, container, job or file is left.

        However often it is called. The launcher's own death (SIGKILL) must lead to the same in the end, or the
        factory's documentation says what stays and how it is removed.
        """
        ...


Factory = Callable[..., Actuator]
"""``factory(wanted: Mapping[str, Range], **options: str)``, see above."""
