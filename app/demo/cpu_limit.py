"""CPU limits for a group of processes: a control group's quota if writable, else a duty cycle of SIGSTOP and SIGCONT.

A limit is in percent of one core (150 is one and a half cores) and is shared by all processes of the group.
``cpu_limit()`` returns the best method available here; ``close()`` removes the control group and continues stopped
processes.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from steward_client.launcher.limits import tree
from steward_client.launcher.limits.cpu import write_quota
from steward_client.launcher.limits.duty import LOOK_SECONDS, DutyCycle
from steward_client.launcher.limits.groups import Group, groups


class CpuLimit(Protocol):
    """A group of processes with a common CPU limit."""

    name: str

    def add(self, pid: int) -> None:
        """Add the process with all its threads to the group."""
        ...

    def set(self, percent: float) -> None:
        """Limit the whole group to ``percent`` of one core from now on; 0 stops it."""
        ...

    def close(self) -> None:
        """Lift the limit; remaining processes continue without it."""
        ...


class CgroupLimit:
    """CPU limit by the quota of a control group."""

    def __init__(self, group: Group) -> None:
        self._group, self._stopped = group, False
        self.name = f"cgroup v{group.version} quota"
        self.set(100)
        self._prefer()

    def _prefer(self) -> None:
        """Give the group a hundred times the default CPU weight, so that only the quota limits it."""
        if self._group.version == 1:
            self._group.write("cpu.shares", "102400")
        else:
            self._group.write("cpu.weight", "10000")

    def add(self, pid: int) -> None:
        """Move the process into the group."""
        self._group.add(pid)

    def set(self, percent: float) -> None:
        """Write the quota in percent of one core; 0 stops the processes, as quotas can't be 0."""
        if (percent == 0) != self._stopped:
            self._let(run=percent > 0)
        write_quota(self._group, percent)

    def _let(self, *, run: bool) -> None:
        self._stopped = not run
        tree.send(self._group.processes(), signal.SIGCONT if run else signal.SIGSTOP)

    def close(self) -> None:
        """Continue all processes, move them back to their former group, and remove the group."""
        if self._stopped and self._group.folder.exists():
            self._let(run=True)
        self._group.close()


class DutyCycleLimit:
    """CPU limit by stopping and continuing the processes according to their measured CPU time; needs no privileges."""

    name = "stop/continue duty cycle"

    def __init__(self) -> None:
        self._pids: list[int] = []
        self._duty = DutyCycle(lambda: self._pids)
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="duty-cycle", daemon=True)
        self._thread.start()

    def add(self, pid: int) -> None:
        """Add the process to the group and measure its CPU time from now on."""
        with self._lock:
            self._pids = [*filter(tree.alive, self._pids), pid]

    def set(self, percent: float) -> None:
        """Limit the group to ``percent`` of one core from now on."""
        with self._lock:
            self._duty.cores = percent / 100

    def close(self) -> None:
        """Continue all processes and end the measuring thread."""
        self._closing.set()
        self._thread.join()
        self._duty.go()

    def _keep(self) -> None:
        before = time.monotonic()
        while not self._closing.wait(LOOK_SECONDS):
            now = time.monotonic()
            with self._lock:
                self._duty.look(now - before)
            before = now


def cpu_limit() -> CpuLimit:
    """A control group's quota if one can be written (which is tried), else a duty cycle."""
    group = groups(["cpu"]).get("cpu")
    return DutyCycleLimit() if group is None else CgroupLimit(group)


@contextmanager
def limited() -> Iterator[CpuLimit]:
    """``cpu_limit()`` as a context manager that closes it."""
    limit = cpu_limit()
    try:
        yield limit
    finally:
        limit.close()
