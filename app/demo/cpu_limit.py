"""Really limit the CPU of a group of processes: a kernel quota where one may be written, else stop and continue.

A limit is in percent of one core (150 is a core and a half) and holds for the group as a whole: processes that are
added to one group compete for the same quota. ``cpu_limit()`` gives the best one that works here; ``close()`` leaves
neither a control group nor a stopped process behind.
"""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psutil

PERIOD_SECONDS = 0.05  # short, so that an iteration of half a second is many periods
PREFIX = "steward-demo-"
_counter = itertools.count()


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
    """A CPU quota of the kernel's: a control group below ``parent``, version 1 or 2; OSError where it can't be had."""

    def __init__(self, parent: Path) -> None:
        _remove_stale(parent)
        self.parent = parent
        self.folder = parent / f"{PREFIX}{os.getpid()}-{next(_counter)}"
        self.folder.mkdir()
        self._stopped = False
        self.version = 2 if (self.folder / "cgroup.controllers").exists() else 1
        self.name = f"cgroup v{self.version} quota"
        try:
            self.set(100)
            self._prefer()
        except OSError:
            self.folder.rmdir()
            raise

    def _prefer(self) -> None:
        """Have the quota decide, not what else this machine does: a hundred times the usual weight, up to the quota."""
        if self.version == 2:
            _write(self.folder / "cpu.weight", "10000")
        else:
            _write(self.folder / "cpu.shares", "102400")

    def add(self, pid: int) -> None:
        """Move the process into the group."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    def set(self, percent: float) -> None:
        """Write the quota: microseconds of CPU per period; the kernel knows none of 0."""
        if (percent == 0) != self._stopped:
            self._let(run=percent > 0)
        period = round(PERIOD_SECONDS * 1e6)
        quota = max(1000, round(percent / 100 * period))
        if self.version == 2:
            _write(self.folder / "cpu.max", f"{quota} {period}")
        else:
            _write(self.folder / "cpu.cfs_period_us", str(period))
            _write(self.folder / "cpu.cfs_quota_us", str(quota))

    def _let(self, *, run: bool) -> None:
        self._stopped = not run
        for pid in (self.folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):  # it ended in between
                os.kill(int(pid), signal.SIGCONT if run else signal.SIGSTOP)

    def close(self) -> None:
        """Let every process run on, move what is left back to where it came from, and remove the group."""
        if not self.folder.exists():
            return
        if self._stopped:
            self._let(run=True)
        for _ in range(50):
            for pid in (self.folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):  # it ended in between
                    (self.parent / "cgroup.procs").write_text(pid)
            with suppress(OSError):  # an ending process still counts for a moment
                self.folder.rmdir()
                return
            time.sleep(0.02)
        self.folder.rmdir()


class DutyCycleLimit:
    """Stops and continues the processes so that their CPU time, measured, keeps to the limit; needs no rights."""

    name = "stop/continue duty cycle"

    def __init__(self) -> None:
        self._processes: dict[int, psutil.Process] = {}
        self._used: dict[int, float] = {}
        self._cores, self._credit, self._stopped = 1.0, 0.0, False
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="duty-cycle", daemon=True)
        self._thread.start()

    def add(self, pid: int) -> None:
        """Count this process's CPU time from now on."""
        with self._lock:
            process = psutil.Process(pid)
            self._processes[pid], self._used[pid] = process, _cpu_seconds(process)
            if self._stopped:
                process.suspend()

    def set(self, percent: float) -> None:
        """Change the rate at which CPU time is granted."""
        with self._lock:
            self._cores = percent / 100

    def close(self) -> None:
        """Let every process run on."""
        self._closing.set()
        self._thread.join()
        with self._lock:
            self._let(run=True)

    def _keep(self) -> None:
        before = time.monotonic()
        while not self._closing.wait(PERIOD_SECONDS / 4):
            now = time.monotonic()
            with self._lock:
                self._account(now - before)
            before = now

    def _account(self, seconds: float) -> None:
        """Grant CPU time for ``seconds`` gone by, take off what was used, and stop or continue."""
        granted = min(self._credit + self._cores * seconds, self._cores * PERIOD_SECONDS)
        self._credit = granted - sum(self._spent(pid) for pid in list(self._processes))
        if (self._credit < 0) != self._stopped:
            self._let(run=self._credit >= 0)

    def _spent(self, pid: int) -> float:
        """CPU seconds used by a process since the last look; one that has ended is dropped."""
        try:
            used = _cpu_seconds(self._processes[pid])
        except psutil.NoSuchProcess:
            del self._processes[pid]
            return 0.0
        spent, self._used[pid] = used - self._used[pid], used
        return spent

    def _let(self, *, run: bool) -> None:
        self._stopped = not run
        for process in self._processes.values():
            with suppress(psutil.NoSuchProcess):  # it ended in between
                process.resume() if run else process.suspend()


def cpu_limit() -> CpuLimit:
    """The kernel's quota where it may be written (tried with a process), else the duty cycle."""
    for parent in control_groups():
        with suppress(OSError):  # not writable, or no CPU controller here: the next one may be
            limit = CgroupLimit(parent)
            try:
                _try_out(limit)
            except OSError:
                limit.close()
                raise
            return limit
    return DutyCycleLimit()


@contextmanager
def limited() -> Iterator[CpuLimit]:
    """``cpu_limit()`` as a context: closed at the end, whatever happens."""
    limit = cpu_limit()
    try:
        yield limit
    finally:
        limit.close()


def control_groups(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[Path]:
    """Folders below which a control group with a CPU quota may be made: this process's own first, then those above."""
    if not own.exists():
        return
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = root if not controllers else root / controllers
        has_cpu = "cpu" in controllers.split(",") or (not controllers and (root / "cgroup.controllers").exists())
        if has_cpu and mount.is_dir():
            group = mount / path.lstrip("/")
            yield from (p for p in (group, *group.parents) if p.is_dir() and p.is_relative_to(mount))


def _write(path: Path, text: str) -> None:
    """Write to a file that must be there already: a missing one means that this controller is off."""
    with path.open("r+") as file:
        file.write(text)


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _try_out(limit: CpuLimit) -> None:
    """Move a process into the group and out again; OSError where that is refused."""
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            limit.add(process.pid)
        finally:
            process.kill()


def _remove_stale(parent: Path) -> None:
    """Remove the groups of demos that were killed."""
    for folder in parent.glob(f"{PREFIX}*-*"):
        if not psutil.pid_exists(int(folder.name.removeprefix(PREFIX).split("-")[0])):
            with suppress(OSError):  # someone else's, or in use: it does no harm
                folder.rmdir()
