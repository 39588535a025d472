"""Containers, pods and jobs left by killed launchers: found by the run's name, and removed at the run's next start.

Each is labelled with the run's name and its launcher's: host, process id and start time of the process. Only launchers
of the same host are known to have ended. A host is identified by its name, its machine's boot and its process
namespace, so that machines or containers with the same name aren't confused.
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
"""Index of the start time in ``/proc/PID/stat``, among the fields after the process's name."""


class Leftover(NamedTuple):
    """A container, pod or job of an earlier launcher: its id, and the launcher's name (empty: unknown)."""

    id: str
    launcher: str


@runtime_checkable
class Leaving(Protocol):
    """An actuator whose commands survive a killed launcher."""

    def leftovers(self, name: str) -> Iterable[Leftover]:
        """All containers, pods or jobs with this run name, of any launcher.

        Raises:
            ActuatorError: the daemon or cluster doesn't respond or refuses.
        """
        ...

    def discard(self, one: Leftover) -> None:
        """End and remove a container, pod or job; raises ActuatorError if that fails."""
        ...


def launcher() -> str:
    """This launcher's unique name, HOST.PROCESS.START, valid as the value of a Kubernetes label."""
    return f"{_host()}.{os.getpid()}.{_began(os.getpid())}"


def remove(actuator: object, name: str, say: Callable[[str], None], *, every: bool = False) -> None:
    """Remove what ended launchers of this host left under a run's name, and report each removal by ``say``.

    What launchers of other hosts, or unknown ones, have left stays, which ``say`` reports too. Errors of the actuator
    are reported by ``say``, never raised. Actuators without leftovers are ignored.

    Args:
        actuator: looks for and removes the leftovers.
        name: name of the run.
        say: function that reports a line of text.
        every: remove all of the run's name, also of launchers that still run, on this host or others.
    """
    if not isinstance(actuator, Leaving):
        return
    try:
        for one in list(actuator.leftovers(name)):
            if every or _launcher_ended(one.launcher):
                actuator.discard(one)
                say(f"removed {one.id}, which launcher {one.launcher or 'unknown'} had left")
            elif _elsewhere(one.launcher):
                say(f"{one.id} is there already, started by {one.launcher}; --clean removes it")
    except ActuatorError as error:
        say(f"what an earlier launcher may have left was not removed: {error}")


def _elsewhere(of: str) -> bool:
    return of.rpartition(".")[0].rpartition(".")[0] != _host()


def _launcher_ended(of: str) -> bool:
    """Whether ``of`` names a launcher of this host that has ended."""
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
    """Start time of a process in clock ticks since boot, as ids are reused; empty if it doesn't exist."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[BEGAN]
    except OSError:
        return ""
