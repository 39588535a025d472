"""Three ways to limit the CPU time of a command and its descendants, in percent of one core (150: one and a half)."""

from __future__ import annotations

import os
from typing import Protocol

from .duty import PERIOD_SECONDS
from .groups import Group
from .guarded import Guarded

CORE = 100.0
LEAST_QUOTA_MICROSECONDS = 1000  # the kernel knows none below


class CpuLimit(Protocol):
    """One way to limit a command's CPU time.

    Attributes:
        how: name of the method for messages, e.g. ``cgroup v2 quota``.
    """

    how: str

    def set(self, percent: float) -> float:
        """Limit the command to ``percent`` of a core from now on; return the limit in effect, in the same unit."""
        ...

    def on(self, command: Guarded) -> None:
        """Apply the limit to a command that has just started, and every later ``set`` to the same command."""
        ...


class Quota:
    """CPU limit by the kernel's quota for all processes of a control group together."""

    def __init__(self, group: Group) -> None:
        self.how, self._group = f"cgroup v{group.version} quota", group

    def set(self, percent: float) -> float:
        """Write the control group's quota and return ``percent``; raises OSError if the file can't be written.

        The kernel's smallest quota is 1 ms per period of 50 ms (2 %); smaller values are applied as that, without an
        error.
        """
        write_quota(self._group, percent)
        return percent

    def on(self, command: Guarded) -> None:
        """Do nothing: the command was started in the control group."""


class Affinity:
    """CPU limit by pinning the command to whole cores, chosen from those that this process may use."""

    def __init__(self, why: str) -> None:
        self.how = f"CPU affinity, whole cores ({why})"
        self._cores, self._command = sorted(os.sched_getaffinity(0)), None
        self._chosen = self._cores

    _command: Guarded | None

    def set(self, percent: float) -> float:
        """Pin the command to ``percent`` / 100 cores, rounded, at least one; return the percent of the cores chosen."""
        count = min(max(1, round(percent / CORE)), len(self._cores))
        self._chosen = self._cores[:count]
        if self._command is not None:
            self._command.tell(cpus=self._chosen)
        return count * CORE

    def on(self, command: Guarded) -> None:
        """Pin the command to the chosen cores."""
        self._command = command
        command.tell(cpus=self._chosen)


class Duty:
    """CPU limit by a duty cycle (SIGSTOP and SIGCONT); it needs no privileges."""

    _command: Guarded | None = None

    def __init__(self, why: str) -> None:
        self.how, self._cores = f"stop/continue duty cycle ({why})", 1.0

    def set(self, percent: float) -> float:
        """Change the command's CPU time per second to ``percent`` of a core, and return ``percent``."""
        self._cores = percent / CORE
        if self._command is not None:
            self._command.tell(duty=self._cores)
        return percent

    def on(self, command: Guarded) -> None:
        """Start the duty cycle of the command at the present limit."""
        self._command = command
        command.tell(duty=self._cores)


def write_quota(group: Group, percent: float) -> None:
    """Limit a control group to ``percent`` of a core, at least 1 ms per 50 ms; raises OSError if it can't be
    written."""
    period = round(PERIOD_SECONDS * 1e6)
    quota = max(LEAST_QUOTA_MICROSECONDS, round(percent / CORE * period))
    if group.version == 1:
        group.write("cpu.cfs_period_us", str(period))
        group.write("cpu.cfs_quota_us", str(quota))
    else:
        group.write("cpu.max", f"{quota} {period}")
