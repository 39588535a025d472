"""Ways to limit the CPU of a command and all that it starts, in percent of a core."""

from __future__ import annotations

import os
from typing import Protocol

from .duty import PERIOD_SECONDS
from .groups import Group
from .guarded import Guarded

CORE = 100.0
LEAST_QUOTA_MICROSECONDS = 1000  # the kernel knows none below


class CpuLimit(Protocol):
    """A way to limit.

    Attributes:
        how: what it is, in words.
    """

    how: str

    def set(self, percent: float) -> float:
        """Limit the command to so many percent of a core from now on; return the limit that it really has."""
        ...

    def on(self, command: Guarded) -> None:
        """Apply the limit to a command that has just been started, and to each later change."""
        ...


class Quota:
    """A quota of the kernel's, for all processes of a control group together."""

    def __init__(self, group: Group) -> None:
        self.how, self._group = f"cgroup v{group.version} quota", group

    def set(self, percent: float) -> float:
        """Write the control group's quota; returns ``percent``, even below the kernel's least, 1 ms a period."""
        write_quota(self._group, percent)
        return percent

    def on(self, command: Guarded) -> None:
        """Do nothing: the command was started in the control group."""


class Affinity:
    """So many of the cores that this process may run on."""

    def __init__(self, why: str) -> None:
        self.how = f"CPU affinity, whole cores ({why})"
        self._cores, self._command = sorted(os.sched_getaffinity(0)), None
        self._chosen = self._cores

    _command: Guarded | None

    def set(self, percent: float) -> float:
        """Choose as many cores as come nearest, at least one, and pin the command to them if it runs."""
        count = min(max(1, round(percent / CORE)), len(self._cores))
        self._chosen = self._cores[:count]
        if self._command is not None:
            self._command.tell(cpus=self._chosen)
        return count * CORE

    def on(self, command: Guarded) -> None:
        """Pin the command to the cores that were chosen."""
        self._command = command
        command.tell(cpus=self._chosen)


class Duty:
    """Stop and continue; needs no rights."""

    _command: Guarded | None = None

    def __init__(self, why: str) -> None:
        self.how, self._cores = f"stop/continue duty cycle ({why})", 1.0

    def set(self, percent: float) -> float:
        """Change the rate at which CPU time is granted, in cores."""
        self._cores = percent / CORE
        if self._command is not None:
            self._command.tell(duty=self._cores)
        return percent

    def on(self, command: Guarded) -> None:
        """Start stopping and continuing the command at the rate that was set."""
        self._command = command
        command.tell(duty=self._cores)


def write_quota(group: Group, percent: float) -> None:
    """Limit a control group to ``percent`` of a core, but to 1 ms of each period at least."""
    period = round(PERIOD_SECONDS * 1e6)
    quota = max(LEAST_QUOTA_MICROSECONDS, round(percent / CORE * period))
    if group.version == 1:
        group.write("cpu.cfs_period_us", str(period))
        group.write("cpu.cfs_quota_us", str(quota))
    else:
        group.write("cpu.max", f"{quota} {period}")
