"""What launchers that were killed left elsewhere: found by the run's name, and removed at its next start.

Whatever is started elsewhere carries the run's name and its launcher's: host, process and when that began. A launcher
of this host that is no more left what it had started; of one of another host nobody here can tell. A host is a name, a
boot of its machine and a namespace of processes: two machines or containers of one name are not taken for each other.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from .contract import ActuatorError

LONGEST_HOST = 24
BOOT, PROCESSES = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
BEGAN = 19
"""Where ``/proc/…/stat`` has when a process began, after its name."""


class Left(NamedTuple):
    """Something that was started: what its place calls it, and by which launcher."""

    id: str
    launcher: str


@runtime_checkable
class Leaving(Protocol):
    """An actuator whose commands outlive a launcher that is killed."""

    def left(self, name: str) -> Iterable[Left]:
        """What is there of a run's name, whoever started it.

        Raises:
            ActuatorError: the place does not answer, or does not tell.
        """
        ...

    def discard(self, one: Left) -> None:
        """End it, and leave nothing of it.

        Raises:
            ActuatorError: it can't be.
        """
        ...


def launcher() -> str:
    """This launcher's name: fit for a label of Kubernetes."""
    return f"{_host()}.{os.getpid()}.{_began(os.getpid())}"


def remove(actuator: object, name: str, say: Callable[[str], None], *, every: bool = False) -> None:
    """Remove what launchers that are no more left under a run's name, and say so.

    Args:
        every: also what launchers of other hosts started, which may still govern it.
    """
    if not isinstance(actuator, Leaving):
        return
    try:
        for one in list(actuator.left(name)):
            if every or _gone(one.launcher):
                actuator.discard(one)
                say(f"removed {one.id}, which launcher {one.launcher or 'unknown'} had left")
            elif _elsewhere(one.launcher):
                say(f"{one.id} is there already, started by {one.launcher}; --clean removes it")
    except ActuatorError as error:
        say(f"what an earlier launcher may have left was not removed: {error}")


def _elsewhere(of: str) -> bool:
    return of.rpartition(".")[0].rpartition(".")[0] != _host()


def _gone(of: str) -> bool:
    """Whether this is a launcher of this host that has ended."""
    pid, began = of.split(".")[-2:] if of.count(".") > 1 else ("", "")
    return not _elsewhere(of) and pid.isdecimal() and _began(int(pid)) != began


def _host() -> str:
    name = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname())[:LONGEST_HOST].strip("-") or "host"
    try:
        where = BOOT.read_text() + str(PROCESSES.readlink())
    except OSError:
        where = ""
    return f"{name}-{hashlib.sha256(where.encode()).hexdigest()[:8]}"


def _began(pid: int) -> str:
    """When a process began, in ticks since the machine did: an id is given anew, this is not; empty without one."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[BEGAN]
    except OSError:
        return ""
