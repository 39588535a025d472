"""Linux control groups (cgroups, version 1 or 2) made by the launcher, and the folders in which it may make them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from . import tree

PREFIX = "steward-"
LIMIT = {
    ("cpu", 1): "cpu.cfs_quota_us",
    ("cpu", 2): "cpu.max",
    ("memory", 1): "memory.limit_in_bytes",
    ("memory", 2): "memory.max",
}
_counter = itertools.count()


class Group:
    """A new control group below ``parent`` that has ``controller`` (``cpu`` or ``memory``).

    Attributes:
        version: version of its hierarchy, 1 or 2.
        folder: folder with its control files.

    Raises:
        OSError: ``parent`` isn't writable or lacks the controller, or the group accepts no processes.
    """

    def __init__(self, parent: Path, controller: str) -> None:
        _remove_stale(parent)
        self.parent = parent
        self.folder = parent / f"{PREFIX}{os.getpid()}-{next(_counter)}"
        self.folder.mkdir()
        self.version = 2 if (self.folder / "cgroup.controllers").exists() else 1
        try:
            self.write(LIMIT[controller, self.version], (self.folder / LIMIT[controller, self.version]).read_text())
            _try_out(self)
        except OSError:
            self.close()
            raise

    def has(self, controller: str) -> bool:
        """Whether the group has this controller (``cpu`` or ``memory``)."""
        return (self.folder / LIMIT[controller, self.version]).exists()

    @property
    def procs(self) -> Path:
        """File with the ids of the group's processes; writing an id to it moves that process into the group."""
        return self.folder / "cgroup.procs"

    def processes(self) -> list[int]:
        """Ids of the processes in the group; raises OSError if the group was removed."""
        return [int(pid) for pid in self.procs.read_text().split()]

    def add(self, pid: int) -> None:
        """Move a process into the group; raises OSError if it has ended or the kernel refuses."""
        self.procs.write_text(str(pid))

    def read(self, name: str) -> str:
        """Content of the control file ``name``, without surrounding whitespace; raises OSError if it is missing."""
        return (self.folder / name).read_text().strip()

    def write(self, name: str, text: str) -> None:
        """Write to an existing control file of the group.

        Raises:
            OSError: the file is missing, because the controller is off, or the kernel refuses the value.
        """
        file = os.open(self.folder / name, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    def close(self) -> None:
        """Move the remaining processes to the parent group, and remove this group; raises OSError if it is still in use
        after 1 s, or may not be changed."""
        remove(self.folder, self.parent)


def remove(folder: Path, parent: Path) -> None:
    """Remove a control group, after moving its processes to the group ``parent``; no effect if it doesn't exist.

    Raises:
        OSError: the group is still in use after 1 s, or may not be changed.
    """
    for left in reversed(range(50)):
        if not folder.exists():
            return
        with suppress(FileNotFoundError):
            for pid in (folder / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):  # it ended in between
                    (parent / "cgroup.procs").write_text(pid)
        try:
            folder.rmdir()
        except OSError:  # an ending process still counts for a moment
            if not left:
                raise
            time.sleep(0.02)


def groups(controllers: Iterable[str]) -> dict[str, Group]:
    """Make control groups and return them by controller; controllers for which no group can be made are missing.

    With cgroup version 2 one group serves all controllers, because a process is in only one group of that hierarchy.
    """
    wanted, groups = list(controllers), dict[str, Group]()
    for controller in wanted:
        if controller not in groups:
            single = any(group.version == 2 for group in groups.values())
            group = _new(controller, [one for one in wanted if one not in groups], only_first=single)
            if group is not None:
                groups |= {one: group for one in (wanted if group.version == 2 else [controller]) if group.has(one)}
    return groups


def _new(controller: str, wanted: Iterable[str], *, only_first: bool) -> Group | None:
    """Create a group with ``controller`` under the nearest writable parent; None if there is none.

    Unless ``only_first``, a parent whose groups have all ``wanted`` controllers, too, is preferred to nearer ones.
    """
    nearest: Group | None = None
    for parent in parents(controller):
        try:
            group = Group(parent, controller)
        except OSError:  # not writable, or no such controller here: the next one may do
            continue
        if group.version == 1 or (not only_first and all(map(group.has, wanted))):
            if nearest is not None:
                nearest.close()
            return group
        if nearest is None and not only_first:
            nearest = group
        else:
            group.close()
    return nearest


def parents(
    controller: str, root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> Iterator[Path]:
    """Yield folders in which a group with this controller may be made: this process's own group, then its ancestors.

    Args:
        controller: ``cpu`` or ``memory``.
        root: mount point of the control groups.
        own: file with this process's groups; without it nothing is yielded.
    """
    if not own.exists():
        return
    for line in own.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        mount = root if not controllers else root / controllers
        has_it = controller in controllers.split(",") or (not controllers and (root / "cgroup.controllers").exists())
        if has_it and mount.is_dir():
            group = mount / path.lstrip("/")
            yield from (p for p in (group, *group.parents) if p.is_dir() and p.is_relative_to(mount))


def _try_out(group: Group) -> None:
    """Move a short-lived process into the group; raises OSError if the kernel refuses."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            group.add(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)


def _remove_stale(parent: Path) -> None:
    """Remove groups of launchers that have ended; groups that can't be removed are left."""
    for folder in parent.glob(f"{PREFIX}[0-9]*-[0-9]*"):
        if not tree.alive(int(folder.name.removeprefix(PREFIX).split("-")[0])):
            with suppress(OSError):  # someone else's, or in use: it does no harm
                folder.rmdir()
