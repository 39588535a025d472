"""Local processes: a command and its descendants, limited on this machine (Linux only).

CPU is limited by a control group's quota if one can be made (cgroup version 2 or 1), else by CPU affinity if all values
are whole cores, else by a duty cycle; memory by a control group.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from functools import partial

from typing_extensions import override

from steward_client.launcher.interrupts import defer_interrupts
from steward_client.launcher.limits.cpu import CORE, Affinity, CpuLimit, Duty, Quota
from steward_client.launcher.limits.groups import Group, groups
from steward_client.launcher.limits.guarded import Guarded, NotStarted
from steward_client.launcher.limits.memory import InUse, MemoryLimit

from .contract import (
    GRACE_SECONDS,
    UNITS,
    Actuator,
    ActuatorError,
    Allocation,
    CannotSet,
    Launch,
    Range,
    Settable,
    Sink,
    Unavailable,
    amount,
)

METHODS = ("auto", "quota", "affinity", "duty")
LEAST_PERCENT, LEAST_MEBIBYTES = 2.0, 8.0


class LocalProcesses(Actuator):
    """Runs a command on this machine.

    Args:
        wanted: the resources to be set: ``cpu`` (percent of a core) and ``memory`` (MiB).
        cpu_method: ``quota``, ``affinity`` or ``duty``; ``auto``: the first of them that can set the wanted range.

    Raises:
        Unavailable: this isn't Linux, or no control group can be made where one is required.
        ActuatorError: ``cpu_method`` is unknown.
        CannotSet: another resource is wanted, or not in that range.
    """

    name = "local"
    shares_files = True

    def __init__(self, wanted: Mapping[str, Range], cpu_method: str = "auto") -> None:
        if sys.platform != "linux":
            raise Unavailable("processes of this machine can be limited on Linux only; choose another --actuator")
        if cpu_method not in METHODS:
            raise ActuatorError(f"cpu_method={cpu_method}: one of {', '.join(METHODS)} is accepted")
        for name, bounds in wanted.items():
            if name not in ("cpu", "memory"):
                raise CannotSet(name, f"{amount(bounds.minimum)}…", "local processes have cpu (%) and memory (MiB)")
        self._current: dict[str, float] = {}
        self._command: Guarded | None = None
        self._groups = groups(name for name in wanted if name == "memory" or cpu_method in ("auto", "quota"))
        try:
            self._cpu = _cpu_limit(wanted["cpu"], cpu_method, self._groups.get("cpu")) if "cpu" in wanted else None
            self._memory = _memory_limit(self._groups.get("memory")) if "memory" in wanted else None
            self._settable = self._settable_resources(wanted)
        except ActuatorError:
            self.close()
            raise

    def _settable_resources(self, wanted: Mapping[str, Range]) -> dict[str, Settable]:
        settables: dict[str, Settable] = {}
        if self._cpu is not None:
            least = CORE if isinstance(self._cpu, Affinity) else LEAST_PERCENT
            most = CORE * len(os.sched_getaffinity(0))
            settables["cpu"] = Settable(UNITS["cpu"], least, most, self._cpu.how)
        if self._memory is not None:
            most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 20)
            settables["memory"] = Settable(UNITS["memory"], LEAST_MEBIBYTES, float(int(most)), self._memory.how)
        for name, settable in settables.items():
            settable.check(name, wanted[name].minimum)
            settable.check(name, wanted[name].maximum)
        return settables

    @override
    def resources(self) -> Mapping[str, Settable]:
        return self._settable

    @override
    def current(self) -> Allocation:
        return dict(self._current)

    @override
    def start(self, launch: Launch) -> None:
        if self._command is not None:
            raise ActuatorError("an actuator starts one command: this one has started already")
        self._set(launch.allocation)
        environment = {**os.environ, **launch.environment}
        items = list(dict.fromkeys(self._groups.values()))
        outputs = None if launch.output is None else _outputs(launch.output)
        try:
            with defer_interrupts():  # else a started command could stay unknown to close()
                self._command = Guarded(launch.command, environment, items, outputs)
        except NotStarted as error:
            self._current = {}
            raise ActuatorError(str(error)) from error
        if self._cpu is not None:
            self._cpu.on(self._command)

    @override
    def apply(self, allocation: Allocation) -> Allocation:
        if self._command is None or self._command.status is None:
            self._set(allocation)
        return self.current()

    def _set(self, allocation: Allocation) -> None:
        for name, value in allocation.items():
            if name not in self._settable:
                raise CannotSet(name, value, f"local processes were started with {', '.join(self._settable)}")
            self._settable[name].check(name, value)
        changed = {name: value for name, value in allocation.items() if self._current.get(name) != value}
        try:
            if self._memory is not None and "memory" in changed:
                self._memory.set(changed["memory"])
                self._current["memory"] = changed["memory"]
            if self._cpu is not None and "cpu" in changed:
                self._current["cpu"] = self._cpu.set(changed["cpu"])
        except InUse as error:
            raise CannotSet("memory", changed["memory"], f"more is needed: {error}") from error
        except FileNotFoundError:  # the command has just ended, and its groups with it
            return

    @override
    def wait(self, seconds: float | None) -> int | None:
        return None if self._command is None else self._command.wait(seconds)

    @override
    def stop(self, number: int = signal.SIGTERM, seconds: float = GRACE_SECONDS) -> int | None:
        if self._command is None or self._command.status is not None:
            return self.wait(0)
        self._command.tell(end=[int(number), seconds])
        return self._command.wait(None)

    @override
    def close(self) -> None:
        if self._command is not None:
            self._command.close()
        for group in self._groups.values():
            group.close()


def _cpu_limit(wanted: Range, method: str, group: Group | None) -> CpuLimit:
    if group is not None:
        return Quota(group)
    if method == "quota":
        raise Unavailable(
            "no control group with a CPU quota may be written here: run it with the rights, or leave out "
            "cpu_method=quota"
        )
    why = "no control group may be written here" if method == "auto" else "as chosen"
    whole = wanted.minimum >= CORE and wanted.minimum % CORE == 0 and wanted.step % CORE == 0
    if method == "affinity" and not whole:
        raise CannotSet("cpu", wanted.step, "affinity needs whole cores: multiples of 100 % (cpu=100..400/100%)")
    return Affinity(why) if whole and method != "duty" else Duty(why)


def _memory_limit(group: Group | None) -> MemoryLimit:
    if group is None:
        raise Unavailable(
            "memory is limited by control groups alone, and none may be written here: leave it out, or "
            "run in one that was delegated (systemd-run --user --scope -p Delegate=yes …)"
        )
    return MemoryLimit(group)


def _outputs(sink: Sink) -> tuple[partial[None], partial[None]]:
    return partial(sink, "stdout"), partial(sink, "stderr")
