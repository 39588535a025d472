"""Control groups of one's own, version 1 or 2, and where they may be made."""

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
    """A control group below ``parent``: OSError where none may be made, or it lacks the controller.

    Attributes:
        version: 1 or 2.
        folder: its files.
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
        """Whether it can limit that."""
        return (self.folder / LIMIT[controller, self.version]).exists()

    @property
    def procs(self) -> Path:
        """The file that lists its processes, and by which one is added."""
        return self.folder / "cgroup.procs"

    def processes(self) -> list[int]:
        """Those that are in it."""
        return [int(pid) for pid in self.procs.read_text().split()]

    def add(self, pid: int) -> None:
        """Move a process into it."""
        self.procs.write_text(str(pid))

    def read(self, name: str) -> str:
        """What one of its files says."""
        return (self.folder / name).read_text().strip()

    def write(self, name: str, text: str) -> None:
        """Write to a file that must be there already: a missing one means that this controller is off."""
        file = os.open(self.folder / name, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)

    def close(self) -> None:
        """Move what is left back to where it came from, and remove the group."""
        remove(self.folder, self.parent)


def remove(folder: Path, parent: Path) -> None:
    """Remove a control group; processes that are in it go to ``parent``, and run on."""
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
    """A group by controller, as far as they can be had.

    Of version 2 one group has several: a process is in one such group alone, so that a second would undo the first.
    """
    wanted, found = list(controllers), dict[str, Group]()
    for controller in wanted:
        if controller not in found:
            single = any(group.version == 2 for group in found.values())
            group = _new(controller, [one for one in wanted if one not in found], only_first=single)
            if group is not None:
                found |= {one: group for one in (wanted if group.version == 2 else [controller]) if group.has(one)}
    return found


def _new(controller: str, wanted: Iterable[str], *, only_first: bool) -> Group | None:
    """A group that has a controller: one of version 2 with all that are wanted where there is one, else the nearest."""
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
    """Folders below which a group with that controller may be made: this process's own first, then those above."""
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
    """Move a process into the group; OSError where that is refused."""
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        try:
            group.add(process.pid)
        finally:
            process.send_signal(signal.SIGKILL)


def _remove_stale(parent: Path) -> None:
    """Remove the groups of processes that were killed."""
    for folder in parent.glob(f"{PREFIX}[0-9]*-[0-9]*"):
        if not tree.alive(int(folder.name.removeprefix(PREFIX).split("-")[0])):
            with suppress(OSError):  # someone else's, or in use: it does no harm
                folder.rmdir()
