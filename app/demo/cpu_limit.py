"""Really limit the CPU of a group of processes: a kernel quota where one may be written, else stop and continue.

A limit is in percent of one core (150 is a core and a half) and holds for the group as a whole: processes that are
added to one group compete for the same quota. ``cpu_limit()`` gives the best one that works here; ``close()`` leaves
neither a control group nor a stopped process behind.
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
    """A group of processes and the CPU it may use."""

    name: str

    def add(self, pid: int) -> None:
        """Put the process (all its threads) under this limit."""
        ...

    def set(self, percent: float) -> None:
        """Limit the whole group to ``percent`` of one core, from now on; 0 stops it."""
        ...

    def close(self) -> None:
        """Lift the limit; processes that are still there run on without it."""
        ...


class CgroupLimit:
    """A CPU quota of the kernel's: that of a control group."""

    def __init__(self, group: Group) -> None:
        self._group, self._stopped = group, False
        self.name = f"cgroup v{group.version} quota"
        self.set(100)
        self._prefer()

    def _prefer(self) -> None:
        """Have the quota decide, not what else this machine does: a hundred times the usual weight, up to the quota."""
        if self._group.version == 1:
            self._group.write("cpu.shares", "102400")
        else:
            self._group.write("cpu.weight", "10000")

    def add(self, pid: int) -> None:
        """Move the process into the group."""
        self._group.add(pid)

    def set(self, percent: float) -> None:
        """Write the quota; the kernel knows none of 0."""
        if (percent == 0) != self._stopped:
            self._let(run=percent > 0)
        write_quota(self._group, percent)

    def _let(self, *, run: bool) -> None:
        self._stopped = not run
        tree.send(self._group.processes(), signal.SIGCONT if run else signal.SIGSTOP)

    def close(self) -> None:
        """Let every process run on, move what is left back to where it came from, and remove the group."""
        if self._stopped and self._group.folder.exists():
            self._let(run=True)
        self._group.close()


class DutyCycleLimit:
    """Stops and continues the processes so that their CPU time, measured, keeps to the limit; needs no rights."""

    name = "stop/continue duty cycle"

    def __init__(self) -> None:
        self._pids: list[int] = []
        self._duty = DutyCycle(lambda: self._pids)
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="duty-cycle", daemon=True)
        self._thread.start()

    def add(self, pid: int) -> None:
        """Count this process's CPU time from now on."""
        with self._lock:
            self._pids = [*filter(tree.alive, self._pids), pid]

    def set(self, percent: float) -> None:
        """Change the rate at which CPU time is granted."""
        with self._lock:
            self._duty.cores = percent / 100

    def close(self) -> None:
        """Let every process run on."""
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
    """The kernel's quota where it may be written (tried with a process), else the duty cycle."""
    group = groups(["cpu"]).get("cpu")
    return DutyCycleLimit() if group is None else CgroupLimit(group)


@contextmanager
def limited() -> Iterator[CpuLimit]:
    """``cpu_limit()`` as a context: closed at the end, whatever happens."""
    limit = cpu_limit()
    try:
        yield limit
    finally:
        limit.close()
