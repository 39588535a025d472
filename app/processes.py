"""Process names that are unique across hosts, and child processes that end with their parent.

``python -m app.processes PARENT MODULE …`` runs a module as a child of process PARENT.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.5


@contextmanager
def importing() -> Iterator[None]:
    """Context manager: import modules without garbage collection, which makes the start a third faster.

    At its end all objects are frozen, so that later collections skip them.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def child_command(module: str, *arguments: str) -> list[str]:
    """Command line that runs a module as a child which ends with this process."""
    return [sys.executable, "-m", "app.processes", str(os.getpid()), module, *arguments]


def die_with_parent(parent: int) -> None:
    """Kill this process when process `parent` ends; exits at once if it has ended already.

    On Linux the kernel kills it (`PR_SET_PDEATHSIG`), elsewhere a thread that looks every 0.5 s.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent-watch").start()
    if os.getppid() != parent:
        os._exit(1)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    os._exit(1)


def node_name() -> str:
    """Name of this host and process namespace, within which process ids are unique."""
    namespace = Path("/proc/self/ns/pid")
    mark = f":{namespace.stat().st_ino}" if namespace.exists() else ""
    return f"{socket.gethostname()}{mark}"


def process_name() -> str:
    """Name of this process, unique across hosts and restarts: node, process id, start time."""
    return _name(psutil.Process())


def _name(process: psutil.Process) -> str:
    return f"{node_name()}/{process.pid}/{process.create_time():.2f}"


def children() -> dict[str, psutil.Process]:
    """Running child processes of this process, by name."""
    processes = dict[str, psutil.Process]()
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            processes[_name(child)] = child
    return {name: child for name, child in processes.items() if not has_ended(child)}


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended or is a zombie."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def is_gone(name: str) -> bool:
    """Whether the named process ran on this node and has ended; False if unknown."""
    node, _, rest = name.rpartition("/")[0].rpartition("/")
    if node != node_name() or not rest.isdigit():
        return False
    try:
        process = psutil.Process(int(rest))
        return has_ended(process) or _name(process) != name
    except psutil.NoSuchProcess:
        return True


def main() -> None:
    """Run the module named on the command line as a child of the given parent."""
    parent, module, *arguments = sys.argv[1:]
    die_with_parent(int(parent))
    sys.argv = [module, *arguments]
    with importing():
        import_module(module)
    del sys.modules[module]  # it is run under another name, on what it has imported
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
