"""The processes of a service under test."""

from __future__ import annotations

import contextlib

import psutil

from tests.servers import StewardServer, wait_until


def worker_main(server: StewardServer, other_than: int = 0) -> psutil.Process:
    """The worker's main process, once it is there: the child of `steward serve` that is not process ``other_than``."""
    processes = list[psutil.Process]()

    def there() -> bool:
        for child in psutil.Process(server.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, and waits to be noticed
                if child.pid != other_than and "workers" in child.cmdline():  # not so before it has become a program
                    processes.append(child)
        return bool(processes)

    wait_until(there, 60, "a worker under steward serve")
    return processes[0]


def family(server: StewardServer) -> list[psutil.Process]:
    """The worker's main process and its children, once there are some."""
    main = worker_main(server)
    wait_until(lambda: bool(main.children()), what="the worker to have children")
    return [main, *main.children(recursive=True)]


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more."""
    return not any(map(_runs, processes))


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two
        return False
